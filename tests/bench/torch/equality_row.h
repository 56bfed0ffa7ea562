// One network trained by plans and held against plain training: loss, gradients, buffers and random state
// bit for bit, memory against the budget and the evaluator.
#ifndef STOWAGE_TESTS_BENCH_TORCH_EQUALITY_ROW_H_
#define STOWAGE_TESTS_BENCH_TORCH_EQUALITY_ROW_H_

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "tests/bench/torch/trained_network.h"

namespace stowage {

struct EqualityRow {
  int parameters_without_gradient = 0;  // after the step of plain training
  int plans = 0;
  int moving = 0;  // of these, that copy to the host and back
  int recomputed_forwards = 0;
  int copies = 0;
  int different = 0;       // plans whose step left anything else behind than plain training
  int over_budget = 0;     // plans whose step took more
  int other_copies = 0;    // plans whose step moved other bytes than predicted
  double least_ratio = 1;  // of measured to predicted peak
  double most_ratio = 0;
  Bytes above_prediction;  // the most of a measured peak

  bool good() const;
};

// Five plans, two of which may move tensors over LinkFor. `autocast`: in bfloat16. Searches of graphs are
// cut off after `patience`. Errors: those of profiles, plans and steps.
absl::StatusOr<EqualityRow> ComputeEqualityRow(const NetworkChoice& choice, Form form,
                                               bool autocast, std::chrono::milliseconds patience);

std::string EqualityHeader();
std::string EqualityMarkdown(const std::string& network, Form form, bool autocast,
                             const absl::StatusOr<EqualityRow>& row);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_EQUALITY_ROW_H_
