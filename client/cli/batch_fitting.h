// Which batches train on a device, plain and by plans, and how fast.
#ifndef STOWAGE_CLIENT_CLI_BATCH_FITTING_H_
#define STOWAGE_CLIENT_CLI_BATCH_FITTING_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/batch/fit_batch.h"
#include "solvers/schedule/plan.h"

namespace stowage {

enum class FittedBy {
  kNothing,  // no plan fits
  kPlain,    // plain training does
  kCatalogue,
  kSolver,
};

struct FittedBatch {
  int64_t batch = 0;
  Bytes plain_peak;
  Nanos plain_makespan;
  // By a plan where plain training does not fit; else plain training itself.
  FittedBy by = FittedBy::kNothing;
  Bytes peak;  // 0, as the two below, where nothing fits
  Nanos makespan;
  double samples_per_second = 0;  // and without times
  bool within_profiles = true;    // measured, or between two that are

  bool plain_fits() const { return by == FittedBy::kPlain; }
  bool fits() const { return by != FittedBy::kNothing; }
  // Of the plan's step over the plain one, 0.1 is 10%; 0 without times.
  double overhead() const;
};

struct BatchFitting {
  int64_t largest_plain = 0;  // 0: not even one sample fits
  int64_t largest = 0;
  int64_t fastest = 0;  // of the batches looked at; 0 without times
  double samples_per_second = 0;
  std::vector<FittedBatch> batches;  // all that were looked at, rising
};

// A plan that is known beforehand, or nothing.
using KnownPlan = std::function<absl::StatusOr<std::optional<Plan>>(const Profile& profile)>;

// Looks for the largest batches and the fastest as FitBatch does, and at the batch `asked` unless that is 0.
// Plain training where it fits; else what is known; else `solve`, whose errors are the errors, as those of `known`
// are. INVALID_ARGUMENT where `asked` is more than profiles may say, or a graph that plain training cannot run.
absl::StatusOr<BatchFitting> FitBatches(const BatchSource& source, Bytes budget, int64_t max_batch,
                                        int64_t asked, const KnownPlan& known,
                                        const SolveProfile& solve);

// What people want to see of the batches: powers of two, the largest and the fastest, and `asked`.
std::vector<FittedBatch> WorthShowing(const BatchFitting& fitting, int64_t asked);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_BATCH_FITTING_H_
