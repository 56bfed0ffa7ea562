// Trains the reference networks, on small images, plain and by plans, as chains and as graphs, with and
// without autocast, and holds one against the other: equality_row.h says what.
//
// Exit code 1 if a step differs, is over its budget, above the evaluator's peak or more than 1% below it, moves
// other bytes than predicted, or if a parameter has no gradient.
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_join.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/torch/equality_row.h"

ABSL_FLAG(std::vector<std::string>, networks, {}, "names with commas between; all if empty");
ABSL_FLAG(std::vector<std::string>, forms, std::vector<std::string>({"chain", "graph"}),
          "chain, graph or both");
ABSL_FLAG(std::vector<std::string>, types, std::vector<std::string>({"float32", "bfloat16"}),
          "float32, bfloat16 (by autocast) or both");
ABSL_FLAG(int32_t, patience_s, 3, "seconds after which the search for one plan is cut off");
ABSL_FLAG(bool, list, false, "prints the names, one a line, and runs nothing");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

bool Has(const std::vector<std::string>& names, const std::string& name) {
  for (const std::string& each : names) {
    if (each == name) return true;
  }
  return false;
}

bool Compare(const std::string& name, Form form, bool autocast) {
  NetworkChoice choice;
  choice.name = name;
  const absl::StatusOr<EqualityRow> row = ComputeEqualityRow(
      choice, form, autocast, std::chrono::seconds(absl::GetFlag(FLAGS_patience_s)));
  std::printf("%s", EqualityMarkdown(name, form, autocast, row).c_str());
  std::fflush(stdout);
  return row.ok() && row->good();
}

bool Run() {
  std::vector<std::string> names = absl::GetFlag(FLAGS_networks);
  if (names.empty()) names = TrainedNames();
  if (absl::GetFlag(FLAGS_list)) {
    std::printf("%s\n", absl::StrJoin(names, "\n").c_str());
    return true;
  }
  const std::vector<std::string> forms = absl::GetFlag(FLAGS_forms);
  const std::vector<std::string> types = absl::GetFlag(FLAGS_types);
  std::printf("%s", EqualityHeader().c_str());
  bool good = true;
  for (const std::string& name : names) {
    for (const Form form : {Form::kChain, Form::kGraph}) {
      for (const bool autocast : {false, true}) {
        if (!Has(forms, ToString(form)) || !Has(types, autocast ? "bfloat16" : "float32")) continue;
        good &= Compare(name, form, autocast);
      }
    }
  }
  return good;
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"networks", "forms", "types", "patience_s", "list"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (!help.ok()) {
    std::fprintf(stderr, "train_equality: %s\n", std::string(help.status().message()).c_str());
    return kUsageError;
  }
  if (*help) {
    std::printf("usage: train_equality [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  TrackingAllocator::Install();
  at::set_num_threads(1);
  return Run() ? 0 : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
