// One network at any batch size, from its profiles at some.
#ifndef STOWAGE_SOLVERS_BATCH_FIT_BATCH_H_
#define STOWAGE_SOLVERS_BATCH_FIT_BATCH_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/plan.h"

namespace stowage {

struct BatchProfile {
  int64_t batch_size = 0;
  Profile profile;
};

// A network at any batch size, from wherever.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // INVALID_ARGUMENT where bytes or times are more than a profile may say.
  virtual absl::StatusOr<Profile> At(int64_t batch_size) const = 0;
  // Whether the profile is as good as any: not told from others beyond which it lies.
  virtual bool Within(int64_t batch_size) const = 0;
  // Nothing of it has times.
  virtual bool timeless() const = 0;
  // Batch sizes that are worth a look, rising; may be none.
  virtual std::vector<int64_t> Suggested() const = 0;
};

// Immutable, hence safe to share between threads.
class BatchModel final : public BatchSource {
 public:
  // INVALID_ARGUMENT made by FieldError ("profiles[1].batch_size"): not 2 to 16 profiles, batch sizes
  // below 1 or equal, or a structure that is not that of the first profile. Structure is all but sizes,
  // times, overheads and labels.
  static absl::StatusOr<BatchModel> Create(std::vector<BatchProfile> profiles);

  // Every size, time and overhead as the straight line through the nearest two batch sizes says, rounded
  // up and not below 0; saved bytes at least what they consist of. INVALID_ARGUMENT where bytes or times
  // are more than a profile may say.
  absl::StatusOr<Profile> At(int64_t batch_size) const override;

  // Measured, or between two that are.
  bool Within(int64_t batch_size) const override;
  // Some profile has no times.
  bool timeless() const override;
  // Those of the profiles.
  std::vector<int64_t> Suggested() const override;
  // Rising batch sizes.
  const std::vector<BatchProfile>& profiles() const { return profiles_; }

 private:
  explicit BatchModel(std::vector<BatchProfile> profiles) : profiles_(std::move(profiles)) {}

  std::vector<BatchProfile> profiles_;
};

// The batch sizes that a budget allows: the largest, and the one with the most samples per second.

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
