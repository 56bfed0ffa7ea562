// Recomputing, offloading and both beside a link to host memory: the figures of Beaumont et al. 2020
// for ResNet, DenseNet and Inception at three image sizes, the memory that each saves, and what half
// of the memory costs. Bytes are exact, times modelled.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "solvers/zoo/networks.h"
#include "tests/bench/parallel.h"
#include "tests/bench/text_file.h"
#include "tests/bench/transfer_curves.h"
#include "tests/bench/transfer_savings.h"
#include "tests/bench/transfer_ways.h"

namespace stowage {
namespace {

constexpr int kUsageError = 2;
constexpr int kThreads = 2;
constexpr int kMemories = 10;
// Measured by Beaumont et al. 2020.
constexpr int64_t kPaperBandwidth = 12200000000;

struct ImageSize {
  int64_t side;
  int64_t batch;
};
constexpr ImageSize kImages[] = {{224, 32}, {500, 8}, {1000, 2}};

constexpr const char* kPaperNetworks[] = {
    "resnet18",    "resnet34",    "resnet50",    "resnet101",   "resnet152",
    "densenet121", "densenet161", "densenet169", "densenet201", "inception_v3"};
// Of which links are compared, with what transformers are like.
constexpr const char* kLinkNetworks[] = {"resnet50",    "resnet152",    "densenet121",
                                         "densenet201", "inception_v3", "decoder_24"};

bool HasImages(const std::string& network) { return !absl::StartsWith(network, "decoder"); }

// Batch sizes as in the first figure; a decoder's is that of its options.
std::vector<Configuration> SmallImages(const std::vector<std::string>& networks) {
  std::vector<Configuration> configurations;
  for (const std::string& name : networks) {
    const bool image = HasImages(name);
    configurations.push_back(
        {name, image ? kImages[0].side : 0, image ? kImages[0].batch : DecoderOptions().batch});
  }
  return configurations;
}

std::vector<Configuration> AllImages(const std::vector<std::string>& networks) {
  std::vector<Configuration> configurations;
  for (const std::string& name : networks) {
    if (!HasImages(name)) continue;
    for (const ImageSize& image : kImages)
      configurations.push_back({name, image.side, image.batch});
  }
  return configurations;
}

void PrintDone(const char* what, const Configuration& c) {
  std::printf("%s: %s %ld px\n", what, c.network.c_str(), static_cast<long>(c.image));
  std::fflush(stdout);
}

absl::Status WriteCurves(const std::filesystem::path& out, const std::vector<std::string>& networks,
                         std::string* summary) {
  const std::vector<Configuration> configurations = AllImages(networks);
  if (configurations.empty()) return absl::OkStatus();
  const TransferModel link = HalfDuplexLink(kPaperBandwidth);
  const auto all = MakeAll<TransferCurves>(
      configurations.size(), kThreads,
      [&](size_t i) { return ComputeTransferCurves(configurations[i], link, kMemories); },
      [](const TransferCurves& curves) { PrintDone("curves", curves.configuration); });
  if (!all.ok()) return all.status();
  absl::Status status = WriteTextFile(out / "curves.csv", TransferCsv(*all));
  for (const TransferCurves& curves : *all) {
    const Configuration& c = curves.configuration;
    status.Update(
        WriteTextFile(out / absl::StrCat(c.network, "_", c.image, ".svg"), TransferSvg(curves)));
  }
  absl::StrAppend(summary,
                  "## Within 1.2 of the bound of offloading at 12.2 GB/s: share of the memories, "
                  "mean and largest ratio\n\n",
                  TransferSummary(*all));
  return status;
}

absl::Status WriteSavings(const std::filesystem::path& out,
                          const std::vector<Configuration>& configurations, std::string* summary) {
  const auto savings = MakeAll<SavingsRow>(
      configurations.size(), kThreads, [&](size_t i) { return ComputeSavings(configurations[i]); },
      [](const SavingsRow& row) { PrintDone("savings", row.configuration); });
  if (!savings.ok()) return savings.status();
  absl::StrAppend(summary,
                  "\n## Store-all's peak over the least memory in which the makespan is at most "
                  "1.2 times the ideal: recompute alone / offload_dynprog / joint\n\n",
                  SavingsMarkdown(*savings));
  return WriteTextFile(out / "savings.csv", SavingsCsv(*savings));
}

absl::Status WriteBalance(const std::filesystem::path& out,
                          const std::vector<Configuration>& configurations, std::string* summary) {
  const auto balance = MakeAll<BalanceRow>(
      configurations.size(), kThreads, [&](size_t i) { return ComputeBalance(configurations[i]); },
      [](const BalanceRow& row) { PrintDone("balance", row.configuration); });
  if (!balance.ok()) return balance.status();
  absl::StrAppend(summary,
                  "\n## Time lost at half of store-all's peak, per cent, by FLOP per transferred "
                  "byte: recompute alone / offload_dynprog / joint\n\n",
                  BalanceMarkdown(*balance));
  absl::Status status = WriteTextFile(out / "balance.csv", BalanceCsv(*balance));
  status.Update(WriteTextFile(out / "balance.svg", BalanceSvg(*balance)));
  return status;
}

absl::Status Run(const std::filesystem::path& out, std::vector<std::string> networks) {
  std::vector<std::string> of_links = networks;
  if (networks.empty()) {
    networks.assign(std::begin(kPaperNetworks), std::end(kPaperNetworks));
    of_links.assign(std::begin(kLinkNetworks), std::end(kLinkNetworks));
  }
  std::string summary;
  absl::Status status = WriteCurves(out, networks, &summary);
  if (status.ok()) status = WriteSavings(out, SmallImages(of_links), &summary);
  if (status.ok()) status = WriteBalance(out, SmallImages(of_links), &summary);
  if (!status.ok()) return status;
  std::printf("\n%s", summary.c_str());
  return WriteTextFile(out / "summary.md", summary);
}

int Main(const std::vector<std::string>& arguments) {
  const bool help = arguments.size() == 1 && arguments[0] == "--help";
  if (help || arguments.empty() || arguments[0].empty() || arguments[0][0] == '-') {
    std::fprintf(help ? stdout : stderr, "usage: offload_curves DIRECTORY [NETWORK...]\n");
    return help ? 0 : kUsageError;
  }
  const absl::Status status = Run(arguments[0], {arguments.begin() + 1, arguments.end()});
  if (status.ok()) return 0;
  std::fprintf(stderr, "offload_curves: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
