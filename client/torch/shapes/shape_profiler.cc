#include "client/torch/shapes/shape_profiler.h"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_scope.h"

namespace stowage {
namespace {

absl::Status Refusal(const absl::Status& why) {
  return absl::FailedPreconditionError(absl::StrCat("shapes alone do not tell: ", why.message()));
}

// A device of which only shapes are looked at.
class ShapesOn final : public ExecutionDevice {
 public:
  ShapesOn(const ExecutionDevice* real, MemoryMeter* meter) : real_(real), meter_(meter) {}

  c10::Device device() const override { return real_->device(); }
  MemoryMeter* meter() override { return meter_; }
  Bytes granularity() const override { return real_->granularity(); }
  Device Hardware() const override { return real_->Hardware(); }
  std::vector<DeviceSetting> Software() const override { return real_->Software(); }

 private:
  const ExecutionDevice* const real_;
  MemoryMeter* const meter_;
};

absl::StatusOr<Profile> FromShapes(
    const ModelTensors& model, const StepMeters& meters,
    const std::function<absl::StatusOr<Profile>(const ProfileOptions&)>& profile) {
  const absl::StatusOr<MemoryMeter*> real = MeterOrInstalled(meters.memory);
  if (!real.ok()) return real.status();
  ExecutionDevice* const device = meters.device;
  TracedDevice on;
  if (device != nullptr) {
    on = {device->device(), device->has_cpu_kernels(), device->granularity(),
          device->cuda_kernels()};
  }
  const auto scope = ShapeScope::Begin(*real, model.buffers(), on);
  if (!scope.ok()) return Refusal(scope.status());
  ProfileOptions options;
  options.bytes_only = options.shapes_only = true;
  options.warmup = 0;
  options.meter = (*scope)->meter();
  std::optional<ShapesOn> shapes;
  if (device != nullptr) options.device = &shapes.emplace(device, (*scope)->meter());
  absl::StatusOr<Profile> found = profile(options);
  if (!found.ok()) return Refusal(found.status());
  const absl::Status status = (*scope)->Check();
  if (!status.ok()) return Refusal(status);
  return found;
}

}  // namespace

absl::StatusOr<Profile> ChainFromShapes(const ChainModel& model, const Tensors& inputs,
                                        const Tensors& targets, const StepMeters& meters) {
  return FromShapes(model, meters, [&](const ProfileOptions& options) {
    return ProfileChain(model, inputs, targets, options);
  });
}

absl::StatusOr<Profile> GraphFromShapes(const GraphModel& model,
                                        const std::vector<at::Tensor>& inputs,
                                        const Tensors& targets, const StepMeters& meters) {
  return FromShapes(model, meters, [&](const ProfileOptions& options) {
    return ProfileGraph(model, inputs, targets, options);
  });
}

}  // namespace stowage
