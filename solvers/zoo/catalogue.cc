#include "solvers/zoo/catalogue.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "solvers/model/canonical.h"
#include "solvers/model/digest.h"
#include "solvers/schedule/schedule.h"
#include "solvers/zoo/network_graph.h"

namespace stowage {
namespace {

std::string Words(const NetworkCatalogue& catalogue, const CatalogueFrontier& frontier) {
  return absl::StrCat("catalogue of ", catalogue.network, " (", SizeText(frontier), ", ",
                      frontier.device, ")");
}

// Form and size.
bool SameSize(const CatalogueFrontier& a, const CatalogueFrontier& b) {
  return a.graph == b.graph && a.image == b.image && a.batch == b.batch && a.classes == b.classes &&
         a.length == b.length;
}

NetworkOptions OptionsOf(const NetworkCatalogue& catalogue, const CatalogueFrontier& frontier) {
  NetworkOptions options;
  options.name = catalogue.network;
  options.batch = frontier.batch;
  if (frontier.length > 0) {
    options.length = frontier.length;
  } else {
    options.image = frontier.image;
    options.classes = frontier.classes;
  }
  return options;
}

// Adds the frontier's schedules; `numbers` gets theirs.
absl::Status AddSchedules(const NetworkCatalogue& catalogue, const CatalogueFrontier& frontier,
                          FrontierBuilder* builder, std::map<std::string, size_t>* numbers) {
  for (const size_t index : frontier.schedules) {
    const std::string& code = catalogue.schedules[index];
    const absl::StatusOr<Schedule> schedule = DecodeSchedule(code, kMaxInstructions);
    const absl::Status added = schedule.ok() ? builder->Add(*schedule) : schedule.status();
    if (!added.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(Words(catalogue, frontier), ": ", added.message()));
    }
    numbers->emplace(code, index);
  }
  return absl::OkStatus();
}

// Those of all devices at the size of `one`; `numbers` as above.
absl::StatusOr<Frontier> Merged(const NetworkCatalogue& catalogue, const CatalogueFrontier& one,
                                const Problem& problem, std::map<std::string, size_t>* numbers) {
  FrontierBuilder builder(problem);
  for (const CatalogueFrontier& other : catalogue.frontiers) {
    if (!SameSize(one, other)) continue;
    const absl::Status added = AddSchedules(catalogue, other, &builder, numbers);
    if (!added.ok()) return added;
  }
  return builder.Build(one.info);
}

absl::StatusOr<CatalogueFrontier> FromOthers(const NetworkCatalogue& catalogue,
                                             CatalogueFrontier one, const std::string& device) {
  one.device = device;
  one.info.exact = false;
  const absl::StatusOr<Problem> problem = ProblemFor(catalogue, one);
  if (!problem.ok()) return problem.status();
  std::map<std::string, size_t> numbers;
  const absl::StatusOr<Frontier> all = Merged(catalogue, one, *problem, &numbers);
  if (!all.ok()) return all.status();
  one.schedules.clear();
  for (const size_t i : ChooseCompact(all->points(), kMostCataloguePoints)) {
    one.schedules.push_back(numbers.at(all->points()[i].schedule.code()));
  }
  return one;
}

}  // namespace

bool IsOfSize(const CatalogueFrontier& frontier, const NetworkOptions& options) {
  if (frontier.batch != options.batch) return false;
  if (frontier.length > 0) return frontier.length == options.length;
  return frontier.image == options.image && frontier.classes == options.classes;
}

std::string SizeText(const CatalogueFrontier& frontier) {
  const std::string form = frontier.graph ? ", op by op" : "";
  if (frontier.length > 0) {
    return absl::StrCat("length ", frontier.length, ", batch ", frontier.batch, form);
  }
  return absl::StrCat("image ", frontier.image, ", batch ", frontier.batch, ", ", frontier.classes,
                      " classes", form);
}

absl::StatusOr<Problem> FormOf(const Network& network, bool graph, const DeviceModel& device) {
  if (graph) {
    absl::StatusOr<Graph> made = ProfiledGraphOf(network, device);
    return made.ok() ? absl::StatusOr<Problem>(*std::move(made)) : made.status();
  }
  absl::StatusOr<Chain> made = ChainOf(network, device);
  return made.ok() ? absl::StatusOr<Problem>(*std::move(made)) : made.status();
}

Digest StructureDigest(const Problem& problem) {
  return Sha256(
      CanonicalBytes(Profile{"", Device(), problem, CostSource::kModelled}, KeyOptions()));
}

absl::StatusOr<Problem> ModelledProblem(const NetworkOptions& options, bool graph,
                                        const std::string& device) {
  const absl::StatusOr<DeviceKind> kind = FindDeviceKind(device);
  if (!kind.ok()) return kind.status();
  const absl::StatusOr<Network> network = MakeNetwork(options);
  if (!network.ok()) return network.status();
  return FormOf(*network, graph, kind->model);
}

absl::StatusOr<Problem> ProblemFor(const NetworkCatalogue& catalogue,
                                   const CatalogueFrontier& frontier) {
  absl::StatusOr<Problem> problem =
      ModelledProblem(OptionsOf(catalogue, frontier), frontier.graph, frontier.device);
  if (!problem.ok()) return problem;
  if (StructureDigest(*problem) == frontier.structure) return problem;
  return absl::FailedPreconditionError(
      absl::StrCat(Words(catalogue, frontier), ": this version describes another network"));
}

absl::StatusOr<Frontier> ValidatedFrontier(const NetworkCatalogue& catalogue,
                                           const CatalogueFrontier& frontier,
                                           const Problem& problem) {
  FrontierBuilder builder(problem);
  std::map<std::string, size_t> numbers;
  const absl::Status added = AddSchedules(catalogue, frontier, &builder, &numbers);
  if (!added.ok()) return added;
  Frontier validated = builder.Build(frontier.info);
  if (validated.points().size() == frontier.schedules.size()) return validated;
  return absl::FailedPreconditionError(absl::StrCat(
      Words(catalogue, frontier), ": ", frontier.schedules.size() - validated.points().size(),
      " of its schedules are no faster than others that take less memory"));
}

absl::StatusOr<CatalogueFrontier> FrontierFor(const NetworkCatalogue& catalogue,
                                              const CatalogueFrontier& one,
                                              const std::string& device) {
  const auto& all = catalogue.frontiers;
  const auto own = std::find_if(all.begin(), all.end(), [&](const CatalogueFrontier& other) {
    return SameSize(one, other) && other.device == device;
  });
  return own != all.end() ? *own : FromOthers(catalogue, one, device);
}

absl::StatusOr<Frontier> FrontierOn(const NetworkCatalogue& catalogue, CatalogueFrontier one,
                                    const Problem& problem) {
  one.info.exact = false;
  one.info.least_budget = Bytes(0);  // workspaces are the problem's own
  std::map<std::string, size_t> numbers;
  return Merged(catalogue, one, problem, &numbers);
}

absl::StatusOr<std::vector<CatalogueFrontier>> FrontiersFor(const NetworkCatalogue& catalogue,
                                                            const std::string& device) {
  std::vector<CatalogueFrontier> frontiers;
  for (const CatalogueFrontier& one : catalogue.frontiers) {
    const auto is_size = [&one](const CatalogueFrontier& other) { return SameSize(one, other); };
    if (std::any_of(frontiers.begin(), frontiers.end(), is_size)) continue;
    absl::StatusOr<CatalogueFrontier> found = FrontierFor(catalogue, one, device);
    if (!found.ok()) return found.status();
    frontiers.push_back(*std::move(found));
  }
  return frontiers;
}

namespace {

constexpr char kMagic[] = "stowage-catalogue 1";
constexpr char kSeal[] = "sha256";
constexpr char kCosts[] = "costs modelled roofline";

std::string FormatSize(const CatalogueFrontier& frontier) {
  const std::string form = frontier.graph ? "form=graph " : "";
  if (frontier.length > 0) {
    return absl::StrCat(form, "length=", frontier.length, " batch=", frontier.batch);
  }
  return absl::StrCat(form, "image=", frontier.image, " batch=", frontier.batch,
                      " classes=", frontier.classes);
}

std::string FormatFrontier(const CatalogueFrontier& frontier) {
  return absl::StrCat("frontier ", FormatSize(frontier), " device=", frontier.device,
                      " solver=", frontier.info.solver, " exact=", frontier.info.exact ? 1 : 0,
                      " slots=", frontier.info.slots, " least=", frontier.info.least_budget.value(),
                      " structure=", frontier.structure.ToHex(),
                      " schedules=", absl::StrJoin(frontier.schedules, ","),
                      " class=", frontier.info.schedule_class, "\n");
}

// Takes "NAME=VALUE" after "NAME=VALUE" from a line, up to the next blank, the last to the line's end. Remembers
// the first field that is not as it must be.
class FieldLine {
 public:
  explicit FieldLine(const std::string& text) : rest_(text) {}

  bool Has(const std::string& name) const { return absl::StartsWith(rest_, Begin(name)); }
  bool Text(const std::string& name, std::string* value, bool last = false) {
    if (!Has(name)) return Check(name, false);
    rest_ = rest_.substr(Begin(name).size());
    const size_t end = last ? rest_.size() : std::min(rest_.find(' '), rest_.size());
    *value = rest_.substr(0, end);
    rest_ = rest_.substr(end);
    return true;
  }
  // In [least, most], and as it would be written: one file has one text.
  bool Count(const std::string& name, int64_t* value, int64_t least = 0,
             int64_t most = std::numeric_limits<int64_t>::max()) {
    std::string text;
    return Text(name, &text) && Check(name, absl::SimpleAtoi(text, value) && *value >= least &&
                                                *value <= most && absl::StrCat(*value) == text);
  }
  bool Check(const std::string& name, bool is_right) {
    if (!is_right && wrong_.empty()) wrong_ = name;
    return is_right;
  }
  const std::string& wrong() const { return wrong_; }
  bool done() const { return rest_.empty(); }

 private:
  static std::string Begin(const std::string& name) { return absl::StrCat(" ", name, "="); }

  std::string rest_;
  std::string wrong_;
};

bool ReadSchedules(const std::string& text, size_t count, std::vector<size_t>* schedules) {
  for (const std::string& one : std::vector<std::string>(absl::StrSplit(text, ','))) {
    uint64_t index = 0;
    if (!absl::SimpleAtoi(one, &index) || index >= count || absl::StrCat(index) != one)
      return false;
    schedules->push_back(index);
  }
  return schedules->size() <= kMostCataloguePoints;
}

bool ReadSize(FieldLine* line, CatalogueFrontier* frontier) {
  std::string form;
  frontier->graph = line->Has("form");
  if (frontier->graph && !(line->Text("form", &form) && line->Check("form", form == "graph"))) {
    return false;
  }
  if (line->Has("length")) {
    return line->Count("length", &frontier->length, /*least=*/1) &&
           line->Count("batch", &frontier->batch);
  }
  return line->Count("image", &frontier->image) && line->Count("batch", &frontier->batch) &&
         line->Count("classes", &frontier->classes);
}

// The name of the field that is wrong; empty where none is.
std::string ReadFrontier(const std::string& fields, size_t schedules, CatalogueFrontier* frontier) {
  FieldLine line(fields);
  int64_t exact = 0, least = 0;
  std::string structure, indices;
  const bool read =
      ReadSize(&line, frontier) && line.Text("device", &frontier->device) &&
      line.Text("solver", &frontier->info.solver) && line.Count("exact", &exact, 0, 1) &&
      line.Count("slots", &frontier->info.slots) && line.Count("least", &least) &&
      line.Text("structure", &structure) &&
      line.Check("structure", DigestFromHex(structure).has_value()) &&
      line.Text("schedules", &indices) &&
      line.Check("schedules", ReadSchedules(indices, schedules, &frontier->schedules)) &&
      line.Text("class", &frontier->info.schedule_class, /*last=*/true);
  frontier->structure = DigestFromHex(structure).value_or(Digest());
  frontier->info.exact = exact != 0;
  frontier->info.least_budget = Bytes(least);
  return read ? "" : line.wrong();
}

std::optional<std::string> ReadSchedule(const std::string& text) {
  std::string code;
  if (!absl::Base64Unescape(text, &code) || absl::Base64Escape(code) != text ||
      !CheckScheduleCode(code, kMaxInstructions).ok()) {
    return std::nullopt;
  }
  return code;
}

// What follows "NAME ", or nothing.
std::optional<std::string> After(const char* name, const std::string& line) {
  const std::string begin = absl::StrCat(name, " ");
  if (!absl::StartsWith(line, begin)) return std::nullopt;
  return line.substr(begin.size());
}

absl::Status LineError(size_t line, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrCat("line ", line + 1, ": ", rule));
}

// The lines before the schedules.
absl::Status ReadHead(const std::vector<std::string>& lines, NetworkCatalogue* catalogue) {
  const auto line = [&lines](size_t i) { return i < lines.size() ? lines[i] : std::string(); };
  if (line(0) != kMagic) return LineError(0, absl::StrCat("must be '", kMagic, "'"));
  const std::optional<std::string> generator = After("generator", line(1));
  if (!generator || !absl::SimpleAtoi(*generator, &catalogue->generator) ||
      catalogue->generator < 1 || absl::StrCat(catalogue->generator) != *generator) {
    return LineError(1, "must be 'generator NUMBER'");
  }
  const std::optional<std::string> version = After("solver_version", line(2));
  if (!version) return LineError(2, "must be 'solver_version TEXT'");
  if (line(3) != kCosts) return LineError(3, absl::StrCat("must be '", kCosts, "'"));
  const std::optional<std::string> network = After("network", line(4));
  if (!network) return LineError(4, "must be 'network NAME'");
  catalogue->solver_version = *version;
  catalogue->network = *network;
  return absl::OkStatus();
}

// A schedule or, behind all of these, a frontier.
absl::Status ReadLine(size_t number, const std::string& line, NetworkCatalogue* catalogue) {
  if (const std::optional<std::string> code = After("schedule", line)) {
    if (!catalogue->frontiers.empty()) {
      return LineError(number, "a schedule must stand before all frontiers");
    }
    std::optional<std::string> schedule = ReadSchedule(*code);
    if (!schedule) return LineError(number, "must be 'schedule CODE', the code of one in base64");
    catalogue->schedules.push_back(*std::move(schedule));
    return absl::OkStatus();
  }
  if (!absl::StartsWith(line, "frontier ")) {
    return LineError(number, "must be 'schedule CODE' or 'frontier FIELDS'");
  }
  CatalogueFrontier frontier;
  const std::string wrong = ReadFrontier(line.substr(8), catalogue->schedules.size(), &frontier);
  if (!wrong.empty()) {
    return LineError(number,
                     absl::StrCat("the field '", wrong, "' of a frontier is missing or wrong"));
  }
  catalogue->frontiers.push_back(std::move(frontier));
  return absl::OkStatus();
}

std::string SealOf(const std::string& text) {
  return absl::StrCat(kSeal, " ", Sha256(text).ToHex());
}

}  // namespace

std::string FormatCatalogue(const NetworkCatalogue& catalogue) {
  std::string text =
      absl::StrCat(kMagic, "\ngenerator ", catalogue.generator, "\nsolver_version ",
                   catalogue.solver_version, "\n", kCosts, "\nnetwork ", catalogue.network, "\n");
  for (const std::string& code : catalogue.schedules) {
    absl::StrAppend(&text, "schedule ", absl::Base64Escape(code), "\n");
  }
  for (const CatalogueFrontier& frontier : catalogue.frontiers) {
    text += FormatFrontier(frontier);
  }
  return text + SealOf(text) + "\n";
}

absl::StatusOr<NetworkCatalogue> ParseCatalogue(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  NetworkCatalogue catalogue;
  absl::Status status = ReadHead(lines, &catalogue);
  if (!status.ok()) return status;
  size_t i = 5;
  size_t bytes = 0;  // of the lines before
  for (size_t k = 0; k < i; ++k) bytes += lines[k].size() + 1;
  for (; i + 1 < lines.size() && !After(kSeal, lines[i]); ++i) {
    status = ReadLine(i, lines[i], &catalogue);
    if (!status.ok()) return status;
    bytes += lines[i].size() + 1;
  }
  // One line more, and its end.
  if (i + 2 != lines.size() || !lines.back().empty() || lines[i] != SealOf(text.substr(0, bytes))) {
    return LineError(i, absl::StrCat("must be the last, '", kSeal,
                                     " DIGEST' of all before it: the file is cut, or was changed"));
  }
  return catalogue;
}

namespace {

namespace fs = std::filesystem;

absl::StatusOr<NetworkCatalogue> ReadFileAt(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path.string()));
  }
  absl::StatusOr<NetworkCatalogue> catalogue = ParseCatalogue(text);
  if (!catalogue.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": ", catalogue.status().message()));
  }
  if (catalogue->network != path.stem().string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is of the network ", catalogue->network));
  }
  return catalogue;
}

}  // namespace

absl::StatusOr<std::vector<NetworkCatalogue>> ReadCatalogue(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kCatalogueEnding) paths.push_back(entry.path());
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the folder ", folder, ": ", error.message()));
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no file *", kCatalogueEnding, " in ", folder));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<NetworkCatalogue> networks;
  for (const fs::path& path : paths) {
    absl::StatusOr<NetworkCatalogue> network = ReadFileAt(path);
    if (!network.ok()) return network.status();
    networks.push_back(*std::move(network));
  }
  return networks;
}

CatalogueHit FindInCatalogue(const std::vector<NetworkCatalogue>& networks,
                             const NetworkOptions& wanted, const std::string& device, bool graph) {
  for (const NetworkCatalogue& network : networks) {
    if (network.network != wanted.name) continue;
    for (const CatalogueFrontier& frontier : network.frontiers) {
      const bool is_form = frontier.graph == graph && frontier.device == device;
      if (is_form && IsOfSize(frontier, wanted)) return {&network, &frontier};
    }
  }
  return {};
}

}  // namespace stowage
