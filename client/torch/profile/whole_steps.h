#ifndef STOWAGE_CLIENT_TORCH_PROFILE_WHOLE_STEPS_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_WHOLE_STEPS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/offload/stage_timer.h"
#include "client/torch/profile/profile_report.h"
#include "solvers/model/units.h"

namespace stowage {

// The whole steps that a profile is calibrated by. Whatever becomes of them, a profile is not failed by
// them. Not thread-safe.
class WholeSteps {
 public:
  // `step` leaves the model as it was. `memory` is what there is for what a step stores.
  WholeSteps(StageTimer* timer, std::function<absl::Status()> step, Bytes memory)
      : timer_(timer), step_(std::move(step)), memory_(memory) {}
  // None will be run.
  explicit WholeSteps(std::string why_not) : why_not_(std::move(why_not)) {}

  // As long as it makes sense to run another.
  bool wanted() const { return why_not_.empty(); }
  // One step, which stores so many bytes at least. Throws what the timer throws.
  void Run(Bytes stored);

  // Of a profile whose times add up to `stages`, and whose passes, each beside a step, took `passes`.
  Calibration CalibrationOf(Nanos stages, const std::vector<Nanos>& passes) const;

 private:
  StageTimer* timer_ = nullptr;
  std::function<absl::Status()> step_;
  Bytes memory_;
  std::string why_not_;
  std::vector<Nanos> times_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_WHOLE_STEPS_H_
