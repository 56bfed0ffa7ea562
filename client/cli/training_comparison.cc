#include "client/cli/training_comparison.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/tensor_storage.h"
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
  equality.loss = std::equal(
      a.steps.begin(), a.steps.end(), b.steps.begin(), b.steps.end(),
      [](const StepReport& x, const StepReport& y) { return x.loss.Get() == y.loss.Get(); });
  equality.gradients = a.gradients == b.gradients;
  equality.parameters = a.parameters == b.parameters;
  equality.buffers = a.buffers == b.buffers;
  equality.random = a.random == b.random;
  return equality;
}

Distance DistanceOf(const Trajectory& a, const Trajectory& b) {
  Distance distance;
  for (size_t i = 0; i < std::min(a.steps.size(), b.steps.size()); ++i) {
    const double of_a = a.steps[i].loss, of_b = b.steps[i].loss;
    const double scale = std::max(std::abs(of_a), std::abs(of_b));
    const double apart = std::abs(of_a - of_b);
    if (apart > 0) distance.loss = std::max(distance.loss, apart / scale);
  }
  double apart = 0, scale = 0;
  for (size_t i = 0; i < a.end.size(); ++i) {
    apart += (a.end[i] - b.end[i]).to(at::kDouble).square().sum().item<double>();
    scale += a.end[i].to(at::kDouble).square().sum().item<double>();
  }
  if (apart > 0) distance.parameters = std::sqrt(apart / scale);
  return distance;
}

Distance SpreadOf(const std::vector<Trajectory>& runs) {
  Distance spread;
  for (size_t i = 0; i < runs.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Distance distance = DistanceOf(runs[i], runs[j]);
      spread.loss = std::max(spread.loss, distance.loss);
      spread.parameters = std::max(spread.parameters, distance.parameters);
    }
  }
  return spread;
}

bool LiesWithin(const Distance& spread, const std::vector<Trajectory>& runs,
                const Trajectory& run) {
  return std::any_of(runs.begin(), runs.end(), [&](const Trajectory& other) {
    return DistanceOf(other, run).within(spread);
  });
}

TrainingComparison::TrainingComparison(const ModelTensors* model, const Batch* batch, uint64_t seed,
                                       StepFunction plain)
    : model_(model),
      batch_(batch),
      seed_(seed),
      plain_(std::move(plain)),
      device_(DeviceOf(batch->inputs)),
      random_(RandomState::Capture(device_)),
      parameters_(Clones(model->parameters())),
      buffers_(Clones(model->buffers())) {}

void TrainingComparison::Restore() const {
  CopyBack(parameters_, model_->parameters());
  CopyBack(buffers_, model_->buffers());
  model_->ZeroGradients();
  // Of a device that LibTorch does not seed with the others, too.
  random_.Restore();
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
  trajectory.random = RandomState::Capture(device_);
  if (!device_.is_cpu()) {
    for (const at::Tensor& parameter : Clones(model_->parameters())) {
      trajectory.end.push_back(parameter.to(at::kCPU));
    }
  }
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
  if (next->loss.Get() != plain->loss.Get() || after_error != GradientDigest(*model_)) {
    return absl::InternalError("the step after an out-of-memory error differs from a plain step");
  }
  return absl::OkStatus();
}

}  // namespace stowage
