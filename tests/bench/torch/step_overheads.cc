// Holds planned steps against a plain step and their measured recomputations, network by network, as chains and as graphs:
// overhead_rows.h says how.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/torch/overhead_rows.h"

ABSL_FLAG(std::vector<std::string>, networks,
          std::vector<std::string>({"resnet18", "resnet50", "densenet121", "decoder"}),
          "names with commas between");
ABSL_FLAG(int64_t, image, 96, "pixels on a side");
ABSL_FLAG(int64_t, batch, 4, "images or sequences of a step");
ABSL_FLAG(int64_t, length, 16, "tokens of a sequence");
ABSL_FLAG(int32_t, rounds, 15, "rounds of a plain step, a planned one and one that is measured");
ABSL_FLAG(bool, list, false, "prints the networks, one a line, and runs nothing");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

int Run() {
  OverheadOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  int code = 0;
  std::printf("%s", OverheadHeader().c_str());
  for (const std::string& name : absl::GetFlag(FLAGS_networks)) {
    NetworkChoice choice;
    choice.name = name;
    choice.image = absl::GetFlag(FLAGS_image);
    choice.batch = absl::GetFlag(FLAGS_batch);
    choice.decoder.layers = 12;
    choice.decoder.length = absl::GetFlag(FLAGS_length);
    for (const Form form : {Form::kChain, Form::kGraph}) {
      const absl::StatusOr<std::vector<OverheadRow>> rows = MeasureOverheads(choice, form, options);
      if (!rows.ok()) {
        std::printf("| %s | %s | %s |\n", name.c_str(), ToString(form),
                    std::string(rows.status().message()).c_str());
        code = 1;
        continue;
      }
      for (const OverheadRow& row : *rows) std::printf("%s", OverheadMarkdown(row).c_str());
      std::fflush(stdout);
    }
  }
  return code;
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"networks", "image", "batch", "length", "rounds", "list"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (!help.ok()) {
    std::fprintf(stderr, "step_overheads: %s\n", std::string(help.status().message()).c_str());
    return kUsageError;
  }
  if (*help) {
    std::printf("usage: step_overheads [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  if (absl::GetFlag(FLAGS_list)) {
    for (const std::string& name : absl::GetFlag(FLAGS_networks)) std::printf("%s\n", name.c_str());
    return 0;
  }
  TrackingAllocator::Install();
  at::set_num_threads(1);
  return Run();
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
