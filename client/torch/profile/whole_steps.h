#ifndef STOWAGE_CLIENT_TORCH_PROFILE_WHOLE_STEPS_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_WHOLE_STEPS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/offload/later.h"
#include "client/torch/profile/profile_report.h"
#include "solvers/model/units.h"

namespace stowage {

// Leaves the model as it was.
struct WholeStep {
  Bytes peak;                                         // as it is predicted
  std::function<absl::StatusOr<Later<Nanos>>()> run;  // what it took, StepReport::wall_time
};

// The whole steps that a profile is calibrated by. Whatever becomes of them, a profile is not failed by
// them. Not thread-safe.
class WholeSteps {
 public:
  // `memory` is what there is for a step.
  explicit WholeSteps(Bytes memory) : memory_(memory) {}
  // None will be run.
  explicit WholeSteps(std::string why_not) : why_not_(std::move(why_not)) {}

  // As long as it makes sense to run another.
  bool wanted() const { return why_not_.empty(); }
  // One step, that which `make` makes at the first call. Not one that takes more memory than there is. Where the device is behind
  // the host, the one before is not waited for: the device then begins with the step when the one before is done, as in training,
  // and not when the host has found the first kernel to give it.
  void Run(const std::function<absl::StatusOr<WholeStep>()>& make);

  // Of a profile whose times add up to `stages`, and whose passes, each beside a step, took `passes`.
  Calibration CalibrationOf(Nanos stages, const std::vector<Nanos>& passes) const;

 private:
  void Prepare(absl::StatusOr<WholeStep> step);
  absl::StatusOr<Nanos> Time() const;

  Bytes memory_;
  std::optional<WholeStep> step_;
  std::string why_not_;
  std::vector<Nanos> times_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_WHOLE_STEPS_H_
