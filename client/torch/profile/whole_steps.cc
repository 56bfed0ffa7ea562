#include "client/torch/profile/whole_steps.h"

#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/torch/profile/median.h"

namespace stowage {
namespace {

// Beyond it, stages and step did not do the same work, or not on the same machine.
constexpr double kMostFactor = 2;

}  // namespace

void WholeSteps::Prepare(absl::StatusOr<WholeStep> step) {
  if (!step.ok()) {
    why_not_ = absl::StrCat("there is no whole step: ", std::string(step.status().message()));
    return;
  }
  if (step->peak > memory_) {
    why_not_ = absl::StrCat("a whole step takes ", ToString(step->peak), ", and ",
                            ToString(memory_), " of memory are free");
    return;
  }
  step_ = *std::move(step);
}

absl::StatusOr<Nanos> WholeSteps::Time() const {
  absl::StatusOr<Later<Nanos>> time = step_->run();
  if (time.ok() && !time->ready()) time = step_->run();
  if (!time.ok()) return time.status();
  return time->Get();
}

void WholeSteps::Run(const std::function<absl::StatusOr<WholeStep>()>& make) {
  if (wanted() && !step_) Prepare(make());
  if (!wanted()) return;
  const absl::StatusOr<Nanos> time = Time();
  if (!time.ok()) {
    why_not_ = absl::StrCat(absl::IsResourceExhausted(time.status())
                                ? "a whole step does not fit into the memory: "
                                : "a whole step failed: ",
                            std::string(time.status().message()));
    return;
  }
  times_.push_back(*time);
}

Calibration WholeSteps::CalibrationOf(Nanos stages, const std::vector<Nanos>& passes) const {
  Calibration calibration;
  calibration.stages = stages;
  calibration.steps = static_cast<int>(times_.size());
  calibration.why_not = why_not_;
  if (!times_.empty()) calibration.step = Median(times_);
  if (!wanted()) return calibration;
  const double factor =
      static_cast<double>(calibration.step.value()) / static_cast<double>(stages.value());
  if (!(factor <= kMostFactor && factor >= 1 / kMostFactor)) {
    calibration.why_not =
        absl::StrFormat("a whole step takes %.2f times as long as its stages", factor);
    return calibration;
  }
  calibration.applied = true;
  calibration.factor = factor;
  std::vector<double> residuals;
  for (size_t i = 0; i < times_.size(); ++i) {
    const double pass = static_cast<double>(passes[i].value()) * factor;
    residuals.push_back(std::abs(pass / static_cast<double>(times_[i].value()) - 1));
  }
  calibration.residual = Median(std::move(residuals));
  return calibration;
}

}  // namespace stowage
