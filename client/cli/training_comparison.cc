#include "client/cli/training_comparison.h"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/state_digest.h"

namespace stowage {
namespace {

std::vector<at::Tensor> Clones(const std::vector<at::Tensor>& tensors) {
  const torch::NoGradGuard no_grad;
  std::vector<at::Tensor> clones;
  for (const at::Tensor& tensor : tensors) clones.push_back(tensor.clone());
  return clones;
}

void CopyBack(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

}  // namespace

Bytes Trajectory::peak() const {
  Bytes peak;
  for (const StepReport& step : steps) peak = std::max(peak, step.peak);
  return peak;
}

Nanos Trajectory::median_time() const {
  std::vector<Nanos> times;
  for (const StepReport& step : steps) times.push_back(step.wall_time);
  std::sort(times.begin(), times.end());
  return times.empty() ? Nanos() : times[times.size() / 2];
}

Equality Compare(const Trajectory& a, const Trajectory& b) {
  Equality equality;
  equality.loss =
      std::equal(a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
                 [](const StepReport& x, const StepReport& y) { return x.loss == y.loss; });
  equality.gradients = a.gradients == b.gradients;
  equality.parameters = a.parameters == b.parameters;
  equality.buffers = a.buffers == b.buffers;
  equality.random = a.random == b.random;
  return equality;
}

TrainingComparison::TrainingComparison(const ModelTensors* model, const Batch* batch, uint64_t seed,
                                       StepFunction plain)
    : model_(model),
      batch_(batch),
      seed_(seed),
      plain_(std::move(plain)),
      parameters_(Clones(model->parameters())),
      buffers_(Clones(model->buffers())) {}

void TrainingComparison::Restore() const {
  CopyBack(parameters_, model_->parameters());
  CopyBack(buffers_, model_->buffers());
  model_->ZeroGradients();
  torch::manual_seed(seed_);
}

absl::StatusOr<StepReport> TrainingComparison::Step(const StepFunction& step) const {
  Batch batch = *batch_;
  batch.inputs = Clones(batch.inputs);
  return step(std::move(batch));
}

absl::StatusOr<Trajectory> TrainingComparison::Train(int steps, const StepFunction& step) const {
  Restore();
  torch::optim::SGD optimizer(model_->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
  Trajectory trajectory;
  for (int i = 0; i < steps; ++i) {
    model_->ZeroGradients();
    absl::StatusOr<StepReport> report = Step(step);
    if (!report.ok()) return report.status();
    trajectory.steps.push_back(*report);
    trajectory.gradients.push_back(GradientDigest(*model_));
    optimizer.step();
  }
  trajectory.parameters = ParameterDigest(*model_);
  trajectory.buffers = BufferDigest(*model_);
  trajectory.random = RandomState::Capture();
  return trajectory;
}

absl::StatusOr<Trajectory> TrainingComparison::TrainPlain(int steps) const {
  const absl::StatusOr<Trajectory> warm = Train(1, plain_);
  if (!warm.ok()) return warm.status();
  return Train(steps, plain_);
}

absl::Status TrainingComparison::CheckLimit(Bytes peak, const StepFunction& step) const {
  constexpr Bytes kBelow(64);
  TrackingAllocator* allocator = TrackingAllocator::Get();
  Restore();
  allocator->SetLimit(allocator->current() + peak - kBelow);
  const absl::Status limited = Step(step).status();
  allocator->ClearLimit();
  if (!absl::IsResourceExhausted(limited)) {
    return absl::InternalError(
        absl::StrCat("a limit 64 bytes below the peak gave: ", limited.ToString()));
  }
  model_->ZeroGradients();
  const absl::StatusOr<StepReport> next = Step(step);
  if (!next.ok()) return next.status();
  const Digest after_error = GradientDigest(*model_);

  Restore();
  const absl::StatusOr<StepReport> plain = Step(plain_);
  if (!plain.ok()) return plain.status();
  if (next->loss != plain->loss || after_error != GradientDigest(*model_)) {
    return absl::InternalError("the step after an out-of-memory error differs from a plain step");
  }
  return absl::OkStatus();
}

}  // namespace stowage
