// Throughput over checkpoint_sequential, measured, as Beaumont et al. 2019 define it in section 5.4: the
// highest throughput that any number of segments reaches, against the optimal schedule in the memory of
// that run.
#ifndef STOWAGE_TESTS_BENCH_TORCH_GAIN_ROW_H_
#define STOWAGE_TESTS_BENCH_TORCH_GAIN_ROW_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/bench/torch/trained_network.h"
#include "tests/bench/torch/turns.h"

namespace stowage {

// A schedule against the best run. Gains are its steps per second over that run's, less 1.
struct Gain {
  Spread wall;  // by round
  Spread cpu;
  double modelled = 0;  // by the evaluator under the profile's times
  Bytes peak;           // measured
};

struct GainRow {
  NetworkChoice choice;
  int length = 0;         // stages
  int segments = 0;       // of the best run
  Bytes memory;           // it takes, measured
  Nanos step;             // of the best run, median wall time
  double over_plain = 0;  // its time over that of a plain step, by which it is best
  Bytes plain_memory;
  Gain optimal;  // optimal_persistent, the paper's
  Gain choice_of_planner;
};

struct GainOptions {
  int repeats = 3;                    // passes of the profile
  int screenings = 3;                 // steps by which the best number of segments is found, each
  int rounds = 9;                     // of the best run and its rivals, in turn
  ExecutionDevice* device = nullptr;  // as of TrainedNetwork
};

// 2 to 2 sqrt(L) segments are tried. Which is best, CPU time says, on a device its own; it is measured again beside its
// rivals.
// RESOURCE_EXHAUSTED if a rival takes more memory than the run; else errors of profiles, plans and steps.
absl::StatusOr<GainRow> MeasureGain(const NetworkChoice& choice, const GainOptions& options);

std::string GainHeader();
std::string GainMarkdown(const GainRow& row);
// Means over the rows.
std::string GainSummary(const std::vector<GainRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_GAIN_ROW_H_
