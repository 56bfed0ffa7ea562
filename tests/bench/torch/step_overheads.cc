// Holds planned steps against a plain step and their measured recomputations, network by network, as chains and as graphs:
// overhead_rows.h says how.
#include <ATen/Parallel.h>
#include <malloc.h>

#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/torch/overhead_rows.h"

ABSL_FLAG(std::vector<std::string>, networks,
          std::vector<std::string>({"resnet18", "resnet50:chain", "densenet121", "decoder"}),
          "names with commas between, of one form only as resnet50:chain");
ABSL_FLAG(int64_t, image, 96, "pixels on a side");
ABSL_FLAG(int64_t, batch, 4, "images or sequences of a step");
ABSL_FLAG(int64_t, length, 16, "tokens of a sequence");
ABSL_FLAG(int32_t, rounds, 41, "rounds of a plain step, a planned one and one that is measured");
ABSL_FLAG(bool, list, false, "prints the networks, one a line, and runs nothing");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

// In both forms, unless the name says one.
std::vector<Form> FormsOf(std::string* name) {
  for (const Form form : {Form::kChain, Form::kGraph}) {
    const std::string suffix = absl::StrCat(":", ToString(form));
    if (!absl::EndsWith(*name, suffix)) continue;
    name->resize(name->size() - suffix.size());
    return {form};
  }
  return {Form::kChain, Form::kGraph};
}

NetworkChoice ChoiceOf(const std::string& name) {
  NetworkChoice choice;
  choice.name = name;
  choice.image = absl::GetFlag(FLAGS_image);
  choice.batch = absl::GetFlag(FLAGS_batch);
  choice.decoder.layers = 12;
  choice.decoder.length = absl::GetFlag(FLAGS_length);
  return choice;
}

int Run() {
  OverheadOptions options;
  options.rounds = absl::GetFlag(FLAGS_rounds);
  int code = 0;
  std::printf("%s", OverheadHeader().c_str());
  for (std::string name : absl::GetFlag(FLAGS_networks)) {
    for (const Form form : FormsOf(&name)) {
      const absl::StatusOr<std::vector<OverheadRow>> rows =
          MeasureOverheads(ChoiceOf(name), form, options);
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

// Freed memory stays with the process: else a step takes pages from the system or not as blocks of the step before happened
// to lie, and that is more than what is measured here.
void KeepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
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
  KeepFreedMemory();
  TrackingAllocator::Install();
  at::set_num_threads(1);
  return Run();
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
