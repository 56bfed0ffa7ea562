// What chain strategies can do at every budget, for networks at image sizes and batches.
#ifndef STOWAGE_TESTS_BENCH_CURVE_SET_H_
#define STOWAGE_TESTS_BENCH_CURVE_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/frontier.h"
#include "solvers/solver.h"
#include "solvers/zoo/networks.h"

namespace stowage {

struct Configuration {
  std::string network;
  int64_t image = 0;
  int64_t batch = 0;
};

struct StrategyCurve {
  std::string strategy;
  Frontier frontier;
  Nanos solve_cpu;  // of the thread that solved
};

// checkpoint_sequential with a number of segments; others may be better in both.
struct SequentialRun {
  int segments = 0;
  Bytes peak;
  Nanos makespan;
};

struct ConfigurationCurves {
  Configuration configuration;
  int length = 0;    // stages
  Bytes parameters;  // of the weights alone
  Nanos ideal;       // makespan without a budget
  Bytes store_all_peak;
  std::vector<StrategyCurve> curves;  // in the order of the registry
  std::vector<SequentialRun> runs;    // of 2 to 2 sqrt(L) segments
  std::vector<std::string> failures;  // "strategy: why", for those without a curve
};

// Of the strategies named, or of all that copy nothing if none is. INVALID_ARGUMENT if the network cannot be made so, or for a
// name that no chain solver has.
absl::StatusOr<ConfigurationCurves> ComputeCurves(const Configuration& configuration,
                                                  const DeviceModel& device,
                                                  const std::vector<std::string>& strategies = {},
                                                  const SolveOptions& options = {});

// Of all configurations, on `threads` threads, in the order given; the first error ends it.
// `done`, if not null, is told each configuration when it is finished, one at a time.
absl::StatusOr<std::vector<ConfigurationCurves>> ComputeAllCurves(
    const std::vector<Configuration>& configurations, const DeviceModel& device,
    const std::vector<std::string>& strategies, const SolveOptions& options, int threads,
    void (*done)(const ConfigurationCurves&));

// The curve of a strategy, or null.
const Frontier* CurveOf(const ConfigurationCurves& curves, const std::string& strategy);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CURVE_SET_H_
