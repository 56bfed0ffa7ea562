// Extents of placements over live peaks: the reference networks' plans at several budgets, as
// placements.md and .csv.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/bench/parallel.h"
#include "tests/bench/placement_rows.h"
#include "tests/bench/text_file.h"

namespace stowage {
namespace {

constexpr int kUsageError = 2;
constexpr int kThreads = 2;

absl::Status Run(const std::filesystem::path& out, const std::vector<std::string>& names) {
  std::vector<PlacedNetwork> networks;
  for (const PlacedNetwork& network : AllPlacedNetworks()) {
    const bool named = std::find(names.begin(), names.end(), network.name) != names.end();
    if (named || names.empty()) networks.push_back(network);
  }
  const absl::StatusOr<std::vector<PlacementRow>> rows = MakeAll<PlacementRow>(
      networks.size(), kThreads, [&](size_t i) { return ComputePlacementRow(networks[i]); },
      [](const PlacementRow& row) { std::fprintf(stderr, "%s\n", row.network.name.c_str()); });
  if (!rows.ok()) return rows.status();
  const std::string markdown = PlacementMarkdown(*rows);
  std::printf("%s", markdown.c_str());
  absl::Status status = WriteTextFile(out / "placements.md", markdown);
  status.Update(WriteTextFile(out / "placements.csv", PlacementCsv(*rows)));
  return status;
}

int Main(const std::vector<std::string>& arguments) {
  const bool help = arguments.size() == 1 && arguments[0] == "--help";
  if (help || arguments.empty() || arguments[0].empty() || arguments[0][0] == '-') {
    std::fprintf(help ? stdout : stderr, "usage: placement_extents DIRECTORY [NETWORK...]\n");
    return help ? 0 : kUsageError;
  }
  const absl::Status status =
      Run(arguments[0], std::vector<std::string>(arguments.begin() + 1, arguments.end()));
  if (status.ok()) return 0;
  std::fprintf(stderr, "placement_extents: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
