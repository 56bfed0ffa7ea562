// What planned steps cost beyond what they compute: against a plain step and, of plans that recompute, the recomputations as they
// were measured.
#ifndef STOWAGE_TESTS_BENCH_TORCH_OVERHEAD_ROWS_H_
#define STOWAGE_TESTS_BENCH_TORCH_OVERHEAD_ROWS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/torch/trained_network.h"
#include "tests/bench/torch/turns.h"

namespace stowage {

struct OverheadRow {
  std::string network;
  Form form = Form::kChain;
  std::string way;   // "step", a whole one, or "loop", the caller's own through a PlannedModule
  double share = 1;  // of plain training's memory; 1: the plan that stores all
  int stages = 0;    // or vertices
  Nanos stage;       // of a plain step, a stage's forward and backward in the mean
  int recomputed_forwards = 0;
  Spread over_parts;  // the planned step over the plain one of the round and its recomputations
  // The same by CPU time, of which recomputations are taken to have the share that they have of the wall clock's.
  Spread over_parts_cpu;
};

struct OverheadOptions {
  int repeats = 3;  // passes of the profile
  int rounds = 41;  // of a plain step, a planned one and one whose instructions are measured
  std::chrono::milliseconds patience = std::chrono::seconds(5);
};

// The plan for 60%, and the one that stores all, the latter in the caller's own loop, too. Errors: those of profiles, plans and
// steps.
absl::StatusOr<std::vector<OverheadRow>> MeasureOverheads(const NetworkChoice& choice, Form form,
                                                          const OverheadOptions& options);

std::string OverheadHeader();
std::string OverheadMarkdown(const OverheadRow& row);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_OVERHEAD_ROWS_H_
