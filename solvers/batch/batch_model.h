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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BATCH_BATCH_MODEL_H_
