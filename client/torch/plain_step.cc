#include "client/torch/plain_step.h"

#include <c10/core/GradMode.h>

#include "client/torch/model_state.h"
#include "client/torch/torch_status.h"
#include "client/torch/tracking_allocator.h"

namespace stowage {
namespace {

// The loss, backward done.
double Train(const ChainModel& model, const at::Tensor& input, const at::Tensor& target) {
  const at::AutoGradMode grad(true);
  at::Tensor activation = input.variable_data();
  for (int l = 1; l <= model.length(); ++l) activation = model.stage(l).forward(activation);
  const at::Tensor loss = model.loss()(activation, target);
  activation.reset();
  const double value = loss.item<double>();
  if (loss.requires_grad()) loss.backward();
  return value;
}

}  // namespace

absl::StatusOr<StepReport> PlainStep(const ChainModel& model, const at::Tensor& input,
                                     const at::Tensor& target, MemoryMeter* meter) {
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meter);
  if (!used_meter.ok()) return used_meter.status();
  try {
    model.EnsureGradients();
    StateGuard before(model.buffers());
    const StepMeter step(*used_meter, Bytes(static_cast<int64_t>(input.nbytes())));
    StepReport report;
    report.loss = Train(model, input, target);
    step.Finish(&report);
    report.forwards = model.length() + 1;
    report.counts[static_cast<size_t>(Op::kForwardKeepAll)] = report.forwards;
    report.counts[static_cast<size_t>(Op::kBackward)] = report.forwards;
    before.Dismiss();
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("plain training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
