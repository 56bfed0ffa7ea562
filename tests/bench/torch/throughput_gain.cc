// Measures the throughput that the optimal schedule gains over checkpoint_sequential, configuration by
// configuration: gain_row.h says how.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/torch/gain_row.h"

ABSL_FLAG(std::vector<std::string>, configurations,
          std::vector<std::string>({"resnet18:224:4", "resnet34:224:4", "resnet50:224:2",
                                    "resnet101:224:1", "resnet152:224:1", "resnet50:500:1",
                                    "densenet121:224:2", "densenet161:224:1", "densenet169:224:2",
                                    "densenet201:224:1", "densenet121:500:1", "inception_v3:224:2",
                                    "inception_v3:500:1", "vgg11:224:2", "vgg16:224:1",
                                    "vgg19:224:1", "decoder:128:2"}),
          "NETWORK:SIZE:BATCH with commas between; the size is pixels on a side, or of a decoder "
          "the length of its sequences");
ABSL_FLAG(int32_t, rounds, 9, "steps of the best run and of its rivals, in turn");
ABSL_FLAG(int32_t, screenings, 3, "steps by which the best number of segments is found");
ABSL_FLAG(bool, list, false, "prints the configurations, one a line, and runs nothing");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

absl::StatusOr<NetworkChoice> Parse(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  NetworkChoice choice;
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[1], &choice.image) ||
      !absl::SimpleAtoi(parts[2], &choice.batch)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not NETWORK:SIZE:BATCH"));
  }
  choice.name = parts[0];
  choice.classes = 1000;
  choice.decoder.layers = 24;
  choice.decoder.width = 128;
  choice.decoder.heads = 4;
  choice.decoder.length = choice.image;
  choice.decoder.vocabulary = 1000;
  return choice;
}

absl::Status Run() {
  GainOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  options.screenings = absl::GetFlag(FLAGS_screenings);
  std::vector<NetworkChoice> choices;
  for (const std::string& text : absl::GetFlag(FLAGS_configurations)) {
    const absl::StatusOr<NetworkChoice> choice = Parse(text);
    if (!choice.ok()) return choice.status();
    choices.push_back(*choice);
  }
  std::printf("%s", GainHeader().c_str());
  std::vector<GainRow> rows;
  absl::Status status;
  for (const NetworkChoice& choice : choices) {
    const absl::StatusOr<GainRow> row = MeasureGain(choice, options);
    if (row.ok()) {
      rows.push_back(*row);
      std::printf("%s", GainMarkdown(*row).c_str());
    } else {
      std::printf("| %s | %s |\n", choice.name.c_str(),
                  std::string(row.status().message()).c_str());
      status.Update(row.status());
    }
    std::fflush(stdout);
  }
  std::printf("\n%s", GainSummary(rows).c_str());
  return status;
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"configurations", "rounds", "screenings", "list"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (help.ok() && *help) {
    std::printf("usage: throughput_gain [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  if (help.ok() && absl::GetFlag(FLAGS_list)) {
    std::printf("%s\n", absl::StrJoin(absl::GetFlag(FLAGS_configurations), "\n").c_str());
    return 0;
  }
  TrackingAllocator::Install();
  at::set_num_threads(1);
  const absl::Status status = help.ok() ? Run() : help.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "throughput_gain: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kUsageError : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
