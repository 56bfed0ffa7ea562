// One network at any batch size, from its profiles at some.
#ifndef STOWAGE_SOLVERS_BATCH_BATCH_MODEL_H_
#define STOWAGE_SOLVERS_BATCH_BATCH_MODEL_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"

namespace stowage {

struct BatchProfile {
  int64_t batch_size = 0;
  Profile profile;
};

// Immutable, hence safe to share between threads.
class BatchModel {
 public:
  // INVALID_ARGUMENT made by FieldError ("profiles[1].batch_size"): not 2 to 16 profiles, batch sizes
  // below 1 or equal, or a structure that is not that of the first profile. Structure is all but sizes,
  // times, overheads and labels.
  static absl::StatusOr<BatchModel> Create(std::vector<BatchProfile> profiles);

  // Every size, time and overhead as the straight line through the nearest two batch sizes says, rounded
  // up and not below 0; saved bytes at least what they consist of. INVALID_ARGUMENT where bytes or times
  // are more than a profile may say.
  absl::StatusOr<Profile> At(int64_t batch_size) const;

  // Measured, or between two that are.
  bool Within(int64_t batch_size) const;
  // Some profile has no times.
  bool timeless() const;
  // Rising batch sizes.
  const std::vector<BatchProfile>& profiles() const { return profiles_; }

 private:
  explicit BatchModel(std::vector<BatchProfile> profiles) : profiles_(std::move(profiles)) {}

  std::vector<BatchProfile> profiles_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BATCH_BATCH_MODEL_H_
