// Time against memory of every way to train a network beside a link to host memory: the figures of
// Beaumont et al. 2020.
#ifndef STOWAGE_TESTS_BENCH_TRANSFER_CURVES_H_
#define STOWAGE_TESTS_BENCH_TRANSFER_CURVES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "tests/bench/curve_set.h"

namespace stowage {

struct TransferPoint {
  Bytes memory;
  // Proposition 3 there: nothing that recomputes nothing is faster. Recomputing can be.
  Nanos offload_bound;
  Nanos bound;                                  // nothing is faster
  std::vector<std::optional<Nanos>> makespans;  // by way
};

struct TransferCurves {
  Configuration configuration;
  Nanos ideal;
  Bytes store_all_peak;
  std::vector<std::string> ways;
  std::vector<TransferPoint> points;  // by rising memory
};

// At `count` memories, equally spaced from the least in which a schedule that recomputes nothing
// fits, to store-all's peak. INVALID_ARGUMENT if the network cannot be made so.
absl::StatusOr<TransferCurves> ComputeTransferCurves(const Configuration& configuration,
                                                     const TransferModel& link, int count);

// A header, and a row per point and way that has a makespan there.
std::string TransferCsv(const std::vector<TransferCurves>& all);

// Makespan over the bound of offloading, and throughput, against memory.
std::string TransferSvg(const TransferCurves& curves);

// Of every way: at how many points it finds a schedule, at how many that is within 1.2 of the bound
// of offloading, and its mean and largest ratio to it; by family of networks, as Markdown.
std::string TransferSummary(const std::vector<TransferCurves>& all);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TRANSFER_CURVES_H_
