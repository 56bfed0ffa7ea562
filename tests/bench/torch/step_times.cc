// Holds the time of planned steps against the prediction, network by network, as chains and as graphs, with
// plans that recompute and plans that move tensors over a simulated link: step_time_rows.h says how.
#include <ATen/Parallel.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/torch/step_time_rows.h"

ABSL_FLAG(std::vector<std::string>, networks,
          std::vector<std::string>({"resnet18", "resnet50", "densenet121", "inception_v3",
                                    "decoder"}),
          "names with commas between");
ABSL_FLAG(int64_t, image, 96, "pixels on a side");
ABSL_FLAG(int64_t, batch, 4, "images or sequences of a step");
ABSL_FLAG(int32_t, rounds, 7, "rounds of a profile's pass, a plain step and a step of each plan");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

int Run() {
  StepTimeOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  std::vector<StepTimeRow> all;
  int code = 0;
  std::printf("%s", StepTimeHeader().c_str());
  for (const std::string& name : absl::GetFlag(FLAGS_networks)) {
    NetworkChoice choice;
    choice.name = name;
    choice.image = absl::GetFlag(FLAGS_image);
    choice.batch = absl::GetFlag(FLAGS_batch);
    for (const Form form : {Form::kChain, Form::kGraph}) {
      const absl::StatusOr<std::vector<StepTimeRow>> rows = MeasureStepTimes(choice, form, options);
      if (!rows.ok()) {
        std::printf("| %s | %s | %s |\n", name.c_str(), ToString(form),
                    std::string(rows.status().message()).c_str());
        code = 1;
        continue;
      }
      for (const StepTimeRow& row : *rows) std::printf("%s", StepTimeMarkdown(row).c_str());
      std::fflush(stdout);
      all.insert(all.end(), rows->begin(), rows->end());
    }
  }
  std::printf("\n%s", StepTimeSummary(all).c_str());
  return code;
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"networks", "image", "batch", "rounds"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (!help.ok()) {
    std::fprintf(stderr, "step_times: %s\n", std::string(help.status().message()).c_str());
    return kUsageError;
  }
  if (*help) {
    std::printf("usage: step_times [flags]\n\n%s", FlagHelp(flags).c_str());
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
