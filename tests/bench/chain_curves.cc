// Draws time against memory for every chain strategy that copies nothing, as Beaumont et al. 2019 do in
// their experiments: curves.csv, one SVG per network and image size, and the throughput gained over
// checkpoint_sequential. Bytes are exact, times modelled.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "solvers/base/flag_parser.h"
#include "solvers/zoo/networks.h"
#include "tests/bench/curve_report.h"
#include "tests/bench/curve_set.h"
#include "tests/bench/text_file.h"

ABSL_FLAG(std::string, out, "curves", "directory for the files; made if need be");
ABSL_FLAG(std::string, networks, "", "names with commas between; all if empty");
ABSL_FLAG(std::string, images, "224,500,1000", "pixels on a side");
ABSL_FLAG(std::string, batches, "",
          "images per step; if empty, sizes that go with the network and the image");
ABSL_FLAG(std::string, strategies, "",
          "chain solvers to draw, with commas between; all that copy nothing if empty");
ABSL_FLAG(bool, from_0, true, "begin the figures' throughput at 0, not below the slowest strategy");
ABSL_FLAG(int64_t, slots, 500,
          "slots of the solvers' tables, by default those of Beaumont et al. 2019; 0: the solvers' "
          "choice, finer and many times slower");
ABSL_FLAG(int32_t, threads, 2, "configurations that are solved at once");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

std::vector<std::string> Names(const std::string& list) {
  return absl::StrSplit(list, ',', absl::SkipEmpty());
}

absl::StatusOr<std::vector<int64_t>> ParseNumbers(const std::string& text) {
  std::vector<int64_t> numbers;
  for (const auto& part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number)) {
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is no number"));
    }
    numbers.push_back(number);
  }
  return numbers;
}

// Powers of two: the larger the image, the smaller; fewer for the network that takes longest.
std::vector<int64_t> UsualBatches(const std::string& network, int64_t image) {
  if (network == "resnet1001")
    return image > 224 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, 2, 4, 8};
  if (image <= 224) return {8, 16, 32, 64};
  if (image <= 500) return {2, 4, 8, 16};
  return {1, 2, 4, 8};
}

absl::StatusOr<std::vector<Configuration>> ConfigurationsFromFlags() {
  std::vector<std::string> networks = Names(absl::GetFlag(FLAGS_networks));
  if (networks.empty()) {
    for (const NetworkInfo& info : AllNetworks()) {
      if (info.chain) networks.push_back(info.name);
    }
  }
  const auto images = ParseNumbers(absl::GetFlag(FLAGS_images));
  if (!images.ok()) return images.status();
  const auto batches = ParseNumbers(absl::GetFlag(FLAGS_batches));
  if (!batches.ok()) return batches.status();
  std::vector<Configuration> configurations;
  for (const std::string& network : networks) {
    for (const int64_t image : *images) {
      for (const int64_t batch : batches->empty() ? UsualBatches(network, image) : *batches) {
        configurations.push_back({network, image, batch});
      }
    }
  }
  return configurations;
}

void PrintProgress(const ConfigurationCurves& curves) {
  const Configuration& c = curves.configuration;
  std::printf("%s %ld px batch %ld:", c.network.c_str(), static_cast<long>(c.image),
              static_cast<long>(c.batch));
  for (const StrategyCurve& curve : curves.curves) {
    std::printf(" %s %zu points in %s CPU;", curve.strategy.c_str(), curve.frontier.points().size(),
                ToString(curve.solve_cpu).c_str());
  }
  std::printf("\n");
  for (const std::string& failure : curves.failures) std::printf("  %s\n", failure.c_str());
  std::fflush(stdout);
}

absl::Status WriteFiles(const std::vector<ConfigurationCurves>& all, const std::string& summary) {
  const std::filesystem::path out = absl::GetFlag(FLAGS_out);
  absl::Status status = WriteTextFile(out / "curves.csv", CurvesAsCsv(all));
  status.Update(WriteTextFile(out / "summary.txt", summary));
  std::map<std::pair<std::string, int64_t>, std::vector<ConfigurationCurves>> figures;
  for (const ConfigurationCurves& curves : all) {
    figures[{curves.configuration.network, curves.configuration.image}].push_back(curves);
  }
  for (const auto& [key, batches] : figures) {
    status.Update(WriteTextFile(out / absl::StrCat(key.first, "_", key.second, ".svg"),
                                CurvesAsSvg(batches, absl::GetFlag(FLAGS_from_0))));
  }
  return status;
}

absl::Status Run() {
  const auto configurations = ConfigurationsFromFlags();
  if (!configurations.ok()) return configurations.status();
  SolveOptions options;
  options.slots = absl::GetFlag(FLAGS_slots);
  const auto all =
      ComputeAllCurves(*configurations, ModelledV100(), Names(absl::GetFlag(FLAGS_strategies)),
                       options, absl::GetFlag(FLAGS_threads), PrintProgress);
  if (!all.ok()) return all.status();
  const std::string summary = GainSummary(*all, ModelledV100());
  std::printf("\n%s", summary.c_str());
  return WriteFiles(*all, summary);
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"out",        "networks", "images", "batches",
                                          "strategies", "from_0",   "slots",  "threads"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (help.ok() && *help) {
    std::printf("usage: chain_curves [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  const absl::Status status = help.ok() ? Run() : help.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "chain_curves: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kUsageError : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
