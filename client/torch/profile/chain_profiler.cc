#include "client/torch/profile/chain_profiler.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "client/torch/base/torch_status.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/model_state.h"
#include "client/torch/profile/chain_samples.h"
#include "client/torch/profile/gradients_aside.h"
#include "client/torch/profile/profile_pass.h"
#include "client/torch/profile/profile_passes.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

absl::Status CheckRequest(const ChainModel& model, const at::Tensor& input,
                          const ProfileOptions& options) {
  if (model.length() == 0) return absl::InvalidArgumentError("the model has no stage");
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  return CheckPasses(options, {input});
}

// That a plan would run which has memory for everything: all others are told against it.
absl::StatusOr<WholeStep> StoreAllStep(const ChainModel& model, const at::Tensor& input,
                                       const at::Tensor& target, ExecutionDevice* device,
                                       const Passes<StageSample>& passes) {
  absl::StatusOr<Chain> chain =
      MakeChain(model, Bytes(static_cast<int64_t>(input.nbytes())), passes, /*with_times=*/false);
  if (!chain.ok()) return chain.status();
  Schedule schedule = StoreAllSchedule(*chain);
  absl::StatusOr<std::unique_ptr<Executor>> made =
      Executor::Create(&model, *std::move(chain), std::move(schedule), device);
  if (!made.ok()) return made.status();
  const std::shared_ptr<Executor> executor = *std::move(made);
  return WholeStep{executor->prediction().peak,
                   [&model, input, target, executor]() -> absl::StatusOr<Nanos> {
                     const StateGuard restore(model.buffers(), input.device());
                     const absl::StatusOr<StepReport> step = executor->Step(input, target);
                     if (!step.ok()) return step.status();
                     return step->wall_time;
                   }};
}

}  // namespace

absl::StatusOr<Profile> ProfileChain(const ChainModel& model, const at::Tensor& input,
                                     const at::Tensor& target, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, input, options);
  if (!status.ok()) return status;
  const absl::StatusOr<ProfileMeters> meters = MakeProfileMeters(options);
  if (!meters.ok()) return meters.status();
  try {
    const UnusedMemory unused(options.device);
    status = CheckGradientRoom(model, options.device);
    if (!status.ok()) return status;
    const GradientsAside aside(model);
    model.EnsureGradients();
    CostMeter costs(meters->memory, meters->timer.get(), meters->granularity);
    WholeSteps steps = MakeWholeSteps(options, {input});
    absl::StatusOr<Passes<StageSample>> passes = RunPasses<StageSample>(
        options, 2 * (model.length() + 1),
        [&](bool watch, const std::function<void()>& stage_done) {
          return RunProfilePass(model, input, target, &costs, watch, stage_done);
        },
        [&](const Passes<StageSample>& made) {
          return StoreAllStep(model, input, target, options.device, made);
        },
        &steps);
    if (!passes.ok()) return passes.status();
    FinishTimes(options, steps, 1, &*passes);
    absl::StatusOr<Chain> chain =
        MakeChain(model, Bytes(static_cast<int64_t>(input.nbytes())), *passes, !options.bytes_only);
    if (!chain.ok()) return chain.status();
    absl::StatusOr<Device> device = ProfiledDevice(options);
    if (!device.ok()) return device.status();
    return Profile{model.name(), *std::move(device), *std::move(chain),
                   options.bytes_only ? CostSource::kBytesOnly : CostSource::kMeasured};
  } catch (...) {
    return CurrentExceptionToStatus("profiling", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
