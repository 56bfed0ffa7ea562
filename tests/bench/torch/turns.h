// Ways to make a training step, measured in turn: whatever else slows the machine down slows all of them
// down, so that ratios of one round hold where times do not.
#ifndef STOWAGE_TESTS_BENCH_TORCH_TURNS_H_
#define STOWAGE_TESTS_BENCH_TORCH_TURNS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "tests/bench/torch/trained_network.h"

namespace stowage {

// Of one way, by round. CPU time is that of the calling thread, which all of a step runs on where LibTorch
// has one thread.
struct StepTimes {
  std::vector<Nanos> wall;
  std::vector<Nanos> cpu;
  Bytes peak;  // the highest
};

// `warmups` rounds that do not count, then `rounds` >= 1 that do. Each round begins with another way. `before` each step that
// counts so many like it are begun and not waited for: a device is then behind the host, as in training, when the step
// begins. The first error of a step ends it.
absl::StatusOr<std::vector<StepTimes>> TakeTurns(const std::vector<Step>& ways, int warmups,
                                                 int rounds, int before = 0);

// A median, and the quartiles around it.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

// Not of nothing.
Spread SpreadOf(std::vector<double> values);

// times / others, round by round. As many of both.
std::vector<double> Ratios(const std::vector<Nanos>& times, const std::vector<Nanos>& others);

// "1.023 (0.998 to 1.051)".
std::string ToString(const Spread& spread);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_TURNS_H_
