// The time of planned steps against what the evaluator predicts from a profile.
#ifndef STOWAGE_TESTS_BENCH_TORCH_STEP_TIME_ROWS_H_
#define STOWAGE_TESTS_BENCH_TORCH_STEP_TIME_ROWS_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/torch/asked_plan.h"
#include "tests/bench/torch/trained_network.h"
#include "tests/bench/torch/turns.h"

namespace stowage {

// One plan. Ratios are of wall time but where they say CPU.
struct StepTimeRow {
  std::string network;
  Form form = Form::kChain;
  std::string solver;
  double share = 1;  // of plain training's memory, that its budget is
  int recomputed_forwards = 0;
  int copies = 0;
  Nanos measured;          // median
  double slowdown = 1;     // predicted by the first profile, over the ideal
  Spread over_plain;       // planned step over the plain one of the round: what slowdown should be
  Spread over_plain_cpu;   // the same of CPU time, in which waits for copies are not
  Spread over_prediction;  // planned step over what the round's own profile predicts
  Spread over_first;       // over what the profile that the plan was made from predicts
};

struct StepTimeOptions {
  int repeats = 5;  // passes of the profile that plans are made from
  int rounds = 7;
  std::chrono::milliseconds patience = std::chrono::seconds(5);
};

// In each round a profile of one pass, a plain step and a step by each plan, which on a machine that others
// use run at about the same speed; the profile says what the schedules should take in that round.
// Errors: those of profiles, plans and steps.
absl::StatusOr<std::vector<StepTimeRow>> MeasureStepTimes(const NetworkChoice& choice, Form form,
                                                          const StepTimeOptions& options);

std::string StepTimeHeader();
std::string StepTimeMarkdown(const StepTimeRow& row);
// Medians over networks, each by the median of its plans, of how far off the prediction is: of plans that
// move and of those that do not.
std::string StepTimeSummary(const std::vector<StepTimeRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_STEP_TIME_ROWS_H_
