// Measures what checkpoints save of plain training's memory on the networks of Feng & Huang 2018, Table 2,
// beside that paper's figures: memory_row.h says how. On a CPU the full batches take 3 to 9 GB of memory and
// up to minutes for a step; --shrink runs smaller ones, whose bytes are then multiplied.
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/paper_tables.h"
#include "tests/bench/torch/memory_row.h"

ABSL_FLAG(std::vector<std::string>, rows, {},
          "names with commas between; all of the table if empty");
ABSL_FLAG(int64_t, shrink, 1,
          "how many times smaller the batches are than in the table; 0: as small as leaves memory "
          "three times the "
          "weights");
ABSL_FLAG(int32_t, warmups, 0, "steps that do not count, of each way to train");
ABSL_FLAG(int32_t, rounds, 1, "steps whose median time counts, of each way to train");
ABSL_FLAG(bool, list, false, "prints the names, one a line, and runs nothing");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

bool IsAsked(const std::string& name) {
  const std::vector<std::string> rows = absl::GetFlag(FLAGS_rows);
  if (rows.empty()) return PaperFiguresOf(name) != nullptr;
  return std::find(rows.begin(), rows.end(), name) != rows.end();
}

void List() {
  for (const PaperGraph& graph : PaperGraphs()) {
    if (IsAsked(graph.name)) std::printf("%s\n", graph.name.c_str());
  }
}

int Run() {
  MemoryOptions options;
  options.shrink = absl::GetFlag(FLAGS_shrink);
  options.warmups = absl::GetFlag(FLAGS_warmups);
  options.rounds = absl::GetFlag(FLAGS_rounds);
  std::printf("%s", MemoryHeader().c_str());
  int code = 0;
  for (const PaperGraph& graph : PaperGraphs()) {
    if (!IsAsked(graph.name)) continue;
    const absl::StatusOr<MemoryRow> row = MeasureMemory(graph, options);
    if (row.ok()) {
      std::printf("%s", MemoryMarkdown(*row).c_str());
    } else {
      std::printf("| %s | %s |\n", graph.name.c_str(), std::string(row.status().message()).c_str());
      code = 1;
    }
    std::fflush(stdout);
  }
  return code;
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"rows", "shrink", "warmups", "rounds", "list"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (!help.ok()) {
    std::fprintf(stderr, "memory_cut: %s\n", std::string(help.status().message()).c_str());
    return kUsageError;
  }
  if (*help) {
    std::printf("usage: memory_cut [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  if (absl::GetFlag(FLAGS_list)) {
    List();
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
