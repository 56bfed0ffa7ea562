#include "client/torch/chain_profiler.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/autocast_state.h"
#include "client/torch/chain_samples.h"
#include "client/torch/gradients_aside.h"
#include "client/torch/profile_pass.h"
#include "client/torch/profile_passes.h"
#include "client/torch/torch_status.h"
#include "client/torch/torch_version.h"
#include "client/torch/tracking_allocator.h"

namespace stowage {
namespace {

absl::Status CheckRequest(const ChainModel& model, const at::Tensor& input,
                          const ProfileOptions& options) {
  if (model.length() == 0) return absl::InvalidArgumentError("the model has no stage");
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  return CheckPasses(options);
}

}  // namespace

Device DescribeDevice() {
  const at::Context& context = at::globalContext();
  Device device;
  device.model = "cpu";
  device.framework = absl::StrCat("libtorch ", TORCH_VERSION);
  device.math_settings = absl::StrCat("threads=", at::get_num_threads(),
                                      " deterministic=", context.deterministicAlgorithms() ? 1 : 0,
                                      " mkldnn=", context.userEnabledMkldnn() ? 1 : 0);
  const AutocastState autocast = AutocastState::Capture();
  if (autocast.enabled()) {
    absl::StrAppend(&device.math_settings, " autocast=", autocast.ToString());
  }
  device.allocation_granularity = Bytes(1);
  return device;
}

absl::StatusOr<Profile> ProfileChain(const ChainModel& model, const at::Tensor& input,
                                     const at::Tensor& target, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, input, options);
  if (!status.ok()) return status;
  absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(options.meter);
  if (!meter.ok()) return meter.status();
  try {
    const GradientsAside aside(model);
    model.EnsureGradients();
    const absl::StatusOr<Passes<StageSample>> passes = RunPasses<StageSample>(
        options, 2 * (model.length() + 1), [&](const std::function<void()>& stage_done) {
          return RunProfilePass(model, input, target, *meter, stage_done);
        });
    if (!passes.ok()) return passes.status();
    absl::StatusOr<Chain> chain =
        MakeChain(model, Bytes(static_cast<int64_t>(input.nbytes())), *passes, !options.bytes_only);
    if (!chain.ok()) return chain.status();
    return Profile{model.name(), DescribeDevice(), *std::move(chain),
                   options.bytes_only ? CostSource::kBytesOnly : CostSource::kMeasured};
  } catch (...) {
    return CurrentExceptionToStatus("profiling", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
