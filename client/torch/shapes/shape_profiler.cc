#include "client/torch/shapes/shape_profiler.h"

#include <functional>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_scope.h"

namespace stowage {
namespace {

absl::Status Refusal(const absl::Status& why) {
  return absl::FailedPreconditionError(absl::StrCat("shapes alone do not tell: ", why.message()));
}

absl::StatusOr<Profile> FromShapes(
    const ModelTensors& model, MemoryMeter* meter,
    const std::function<absl::StatusOr<Profile>(const ProfileOptions&)>& profile) {
  const absl::StatusOr<MemoryMeter*> real = MeterOrInstalled(meter);
  if (!real.ok()) return real.status();
  const auto scope = ShapeScope::Begin(*real, model.buffers());
  if (!scope.ok()) return Refusal(scope.status());
  ProfileOptions options;
  options.bytes_only = true;
  options.warmup = 0;
  options.meter = (*scope)->meter();
  absl::StatusOr<Profile> found = profile(options);
  if (!found.ok()) return Refusal(found.status());
  const absl::Status status = (*scope)->Check();
  if (!status.ok()) return Refusal(status);
  return found;
}

}  // namespace

absl::StatusOr<Profile> ChainFromShapes(const ChainModel& model, const at::Tensor& input,
                                        const at::Tensor& target, MemoryMeter* meter) {
  return FromShapes(model, meter, [&](const ProfileOptions& options) {
    return ProfileChain(model, input, target, options);
  });
}

absl::StatusOr<Profile> GraphFromShapes(const GraphModel& model,
                                        const std::vector<at::Tensor>& inputs,
                                        const at::Tensor& target, MemoryMeter* meter) {
  return FromShapes(model, meter, [&](const ProfileOptions& options) {
    return ProfileGraph(model, inputs, target, options);
  });
}

}  // namespace stowage
