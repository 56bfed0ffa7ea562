// How those who only make a forward learn what became of the backward, which the caller begins.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_BACKWARD_END_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_BACKWARD_END_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/later.h"
#include "solvers/model/units.h"
#include "solvers/schedule/measured_step.h"

namespace stowage {

// How a step ended that a forward began.
struct StepEnd {
  // RESOURCE_EXHAUSTED where it failed and memory was refused meanwhile, CANCELLED where its graph went without a
  // backward, ABORTED where the backward failed in what is the caller's; else the error of what the plan ran.
  absl::StatusOr<StepReport> report;
  Later<MeasuredStep>
      measured;  // of a step that ended well, if it was to be measured; comes later, as the report's time
};

// Called once, where nobody has waited for the device (StepReport), on the thread that ends the step: where its first backward ends, well or not, or where the last of its
// graph is dropped. What it throws after a good end leaves that backward.
using OnStepEnd = std::function<void(StepEnd)>;

// To be called by a node of autograd's that runs: `ended` is called where that backward ends, with whether it ended
// well. What it throws after a bad end is lost.
void WhenBackwardEnds(std::function<void(bool well)> ended);

// Runs a forward of plain training, measured as a planned one is, and tells how the step ended that it began. Returns
// what `forward` does, in the same graph; of an error tells nothing. `meters` has a meter of memory.
absl::StatusOr<std::vector<at::Tensor>> ForwardOfPlainStep(
    const StepMeters& meters, Bytes input,
    const std::function<absl::StatusOr<std::vector<at::Tensor>>()>& forward, OnStepEnd ended);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_BACKWARD_END_H_
