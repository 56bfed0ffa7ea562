// The batch sizes that a budget allows: the largest, and the one with the most samples per second.
#ifndef STOWAGE_SOLVERS_BATCH_FIT_BATCH_H_
#define STOWAGE_SOLVERS_BATCH_FIT_BATCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/batch/batch_model.h"
#include "solvers/plan/plan.h"

namespace stowage {

struct BatchPoint {
  int64_t batch_size = 0;
  Nanos makespan;  // of the plan for it, as its peak; 0 where nothing fits
  Bytes peak;
  double samples_per_second = 0;  // 0 without times
  bool fits = false;
  bool within_profiles = false;
};

struct BatchFit {
  int64_t largest = 0;  // 0: not even one sample fits
  int64_t fastest = 0;  // of the points; 0 without times
  double samples_per_second = 0;
  std::vector<BatchPoint> points;  // all batches looked at, rising
};

// What a search for batch sizes may take.
struct BatchBounds {
  Bytes budget;  // of one plan
  int64_t max_batch = 0;
};

// Of a device, some of whose memory goes to parameters and the optimizer; 65536 for no max_batch_size.
// INVALID_ARGUMENT made by FieldError, in the names of the service's contract: a device budget below 0,
// more reserved than that, a max_batch_size not in [0, 1048576].
absl::StatusOr<BatchBounds> MakeBatchBounds(Bytes device_budget, Bytes reserved,
                                            int64_t max_batch_size);

using SolveProfile = std::function<absl::StatusOr<Plan>(const Profile& profile)>;

// Doubles the batch from 1 until a plan is no longer found, at most to `max_batch`, and bisects. That
// takes what is true of growing tensors: a larger batch fits in no less memory. The three batches above
// are looked at, too, and where one of them fits the search goes on from there.
//
// Throughput need not have one peak (plans recompute more and more), so it is sampled: at the batches
// looked at so far, at those that the model suggests, then at multiples of 8 and halfway points beside the
// best, 24 at most. Errors are those of `solve`, which says for NOT_FOUND plans that nothing fits; batches
// whose bytes no profile can say do not fit.
absl::StatusOr<BatchFit> FitBatch(const BatchSource& model, int64_t max_batch,
                                  const SolveProfile& solve);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BATCH_FIT_BATCH_H_
