#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "solvers/catalogue/catalogue.h"
#include "solvers/plan/schedule_code.h"

namespace stowage {
namespace {

constexpr char kMagic[] = "stowage-catalogue 1";
constexpr char kCosts[] = "costs modelled roofline";
constexpr int64_t kMaxInstructions = int64_t{1} << 24;

std::string FormatSize(const CatalogueFrontier& frontier) {
  if (frontier.length > 0) {
    return absl::StrCat("length=", frontier.length, " batch=", frontier.batch);
  }
  return absl::StrCat("image=", frontier.image, " batch=", frontier.batch,
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

// Takes "NAME=VALUE" after "NAME=VALUE" from a line, up to the next blank, the last to the line's end.
class FieldLine {
 public:
  explicit FieldLine(const std::string& text) : rest_(text) {}

  bool Text(const std::string& name, std::string* value, bool last = false) {
    const std::string begin = absl::StrCat(" ", name, "=");
    if (!absl::StartsWith(rest_, begin)) return false;  // nothing is taken
    rest_ = rest_.substr(begin.size());
    const size_t end = last ? rest_.size() : std::min(rest_.find(' '), rest_.size());
    *value = rest_.substr(0, end);
    rest_ = rest_.substr(end);
    return true;
  }
  bool Count(const std::string& name, int64_t* value) {
    std::string text;
    // Written as it would be written: one file has one text.
    return Text(name, &text) && absl::SimpleAtoi(text, value) && *value >= 0 &&
           absl::StrCat(*value) == text;
  }
  bool done() const { return rest_.empty(); }

 private:
  std::string rest_;
};

bool ReadDigest(const std::string& text, Digest* digest) {
  const std::string binary = absl::HexStringToBytes(text);
  if (text.size() != 2 * Digest::kSize) return false;
  std::array<uint8_t, Digest::kSize> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(binary[i]);
  *digest = Digest(bytes);
  return digest->ToHex() == text;
}

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
  if (line->Count("length", &frontier->length)) {
    return frontier->length > 0 && line->Count("batch", &frontier->batch);
  }
  return line->Count("image", &frontier->image) && line->Count("batch", &frontier->batch) &&
         line->Count("classes", &frontier->classes);
}

bool ReadFrontier(const std::string& fields, size_t schedules, CatalogueFrontier* frontier) {
  FieldLine line(fields);
  int64_t exact = 0, least = 0;
  std::string structure, indices;
  const bool read =
      ReadSize(&line, frontier) && line.Text("device", &frontier->device) &&
      line.Text("solver", &frontier->info.solver) && line.Count("exact", &exact) && exact <= 1 &&
      line.Count("slots", &frontier->info.slots) && line.Count("least", &least) &&
      line.Text("structure", &structure) && line.Text("schedules", &indices) &&
      line.Text("class", &frontier->info.schedule_class, /*last=*/true) && line.done();
  frontier->info.exact = exact != 0;
  frontier->info.least_budget = Bytes(least);
  return read && ReadDigest(structure, &frontier->structure) &&
         ReadSchedules(indices, schedules, &frontier->schedules);
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

// The lines before the schedules. False if they are not as they must be.
bool ReadHead(const std::vector<std::string>& lines, NetworkCatalogue* catalogue) {
  if (lines.size() < 5 || lines[0] != kMagic || lines[3] != kCosts) return false;
  const std::optional<std::string> generator = After("generator", lines[1]);
  const std::optional<std::string> version = After("solver_version", lines[2]);
  const std::optional<std::string> network = After("network", lines[4]);
  if (!generator || !version || !network) return false;
  catalogue->solver_version = *version;
  catalogue->network = *network;
  return absl::SimpleAtoi(*generator, &catalogue->generator) && catalogue->generator >= 1 &&
         absl::StrCat(catalogue->generator) == *generator;
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
  return text;
}

absl::StatusOr<NetworkCatalogue> ParseCatalogue(const std::string& text) {
  const auto malformed = [](size_t line) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", line + 1, " is not one of a catalogue, version 1"));
  };
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();  // every line ends with one
  NetworkCatalogue catalogue;
  if (!ReadHead(lines, &catalogue)) return malformed(0);
  for (size_t i = 5; i < lines.size(); ++i) {
    const std::optional<std::string> code = After("schedule", lines[i]);
    if (code && catalogue.frontiers.empty()) {
      std::optional<std::string> schedule = ReadSchedule(*code);
      if (!schedule) return malformed(i);
      catalogue.schedules.push_back(*std::move(schedule));
      continue;
    }
    CatalogueFrontier frontier;
    const bool is_frontier = absl::StartsWith(lines[i], "frontier ");
    if (!is_frontier || !ReadFrontier(lines[i].substr(8), catalogue.schedules.size(), &frontier)) {
      return malformed(i);
    }
    catalogue.frontiers.push_back(std::move(frontier));
  }
  return catalogue;
}

}  // namespace stowage
