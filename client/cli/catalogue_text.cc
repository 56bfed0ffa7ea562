#include "client/cli/catalogue_text.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/cells.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

// What a network has at one size of its images or sequences.
struct Sizes {
  std::set<int64_t> batches;
  std::vector<std::string> devices;  // in the order of the file
  std::set<std::string> known;
  int64_t frontiers = 0;
  int64_t points = 0;
};

Listing::Cell SizeCell(int64_t size) {
  return size > 0 ? Listing::Integer(size) : Listing::Nothing();
}

void Count(const CatalogueFrontier& frontier, Sizes* sizes) {
  sizes->batches.insert(frontier.batch);
  if (sizes->known.insert(frontier.device).second) sizes->devices.push_back(frontier.device);
  ++sizes->frontiers;
  sizes->points += static_cast<int64_t>(frontier.schedules.size());
}

}  // namespace

Listing ListingOf(const std::vector<NetworkCatalogue>& networks) {
  Listing listing({{"network", "", "network"},
                   {"form", "", "form"},
                   {"image", "size", "image"},
                   {"length", "tokens", "length"},
                   {"batches", "", "batches"},
                   {"devices", "(modelled)", "devices"},
                   {"frontiers", "", "frontiers"},
                   {"plans", "", "plans"},
                   {"solver", "version", "solver_version"},
                   {"", "", "generator"}});
  for (const NetworkCatalogue& network : networks) {
    std::map<std::tuple<bool, int64_t, int64_t>, Sizes> by_size;
    for (const CatalogueFrontier& one : network.frontiers) {
      Count(one, &by_size[{one.graph, one.image, one.length}]);
    }
    for (const auto& [size, sizes] : by_size) {
      const auto& [graph, image, length] = size;
      listing.AddRow({Listing::Text(network.network), Listing::Text(graph ? "graph" : "chain"),
                      SizeCell(image), SizeCell(length),
                      Listing::Text(absl::StrJoin(sizes.batches, " ")),
                      Listing::Text(absl::StrJoin(sizes.devices, " ")),
                      Listing::Integer(sizes.frontiers), Listing::Integer(sizes.points),
                      Listing::Text(network.solver_version), Listing::Integer(network.generator)});
    }
  }
  return listing;
}

Listing ListingOf(const Frontier& frontier, const Simulation& plain) {
  Listing listing({{"budget", "MiB", "peak_bytes"},
                   {"of plain", "training", "share"},
                   {"step", "ms", "makespan_ns"},
                   {"over", "plain", "overhead"}});
  for (const Frontier::Point& point : frontier.points()) {
    const double share = Fraction(point.peak, plain.peak);
    const double overhead = Overhead(point.makespan, plain.makespan);
    listing.AddRow({Listing::Number(Mebibytes(point.peak), point.peak.value()),
                    Listing::Number(absl::StrFormat("%.1f%%", 100 * share), share),
                    Listing::Number(Milliseconds(point.makespan), point.makespan.value()),
                    Listing::Number(absl::StrFormat("%.2f%%", 100 * overhead), overhead)});
  }
  return listing;
}

std::string ProvenanceText(const NetworkCatalogue& network, const CatalogueFrontier& frontier) {
  return absl::StrCat(
      network.network, ", ", SizeText(frontier), ", on ", frontier.device,
      ": costs modelled (roofline), nothing was measured\nsolved by ", frontier.info.solver, " ",
      network.solver_version, ", generator ", network.generator, "; ", frontier.info.schedule_class,
      "; nothing of these fits below ", frontier.info.least_budget.value(), " bytes\n");
}

absl::StatusOr<std::string> EnvironmentLine(const std::string& kind, const std::string& tenant,
                                            const Device& device) {
  std::string line = absl::StrCat("kind=", kind);
  const std::pair<const char*, std::string> texts[] = {{"tenant", tenant},
                                                       {"device", device.model},
                                                       {"framework", device.framework},
                                                       {"math_settings", device.math_settings}};
  for (const auto& [name, value] : texts) {
    if (value.find_first_of("\"\r\n") != std::string::npos) {
      return FieldError(name, value, "must have no quotes and no ends of lines");
    }
    if (!value.empty()) absl::StrAppend(&line, " ", name, "=\"", value, "\"");
  }
  absl::StrAppend(&line, " granularity=", device.allocation_granularity.value());
  if (device.bandwidth_class != 0) {
    absl::StrAppend(&line, " bandwidth_class=", device.bandwidth_class);
  }
  if (device.duplex != Duplex::kUnspecified) {
    absl::StrAppend(&line, " duplex=", device.duplex == Duplex::kHalf ? "half" : "full");
  }
  return line;
}

}  // namespace stowage
