#include "client/torch/profile/chain_profiler.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "client/torch/base/tensor_storage.h"
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

absl::Status CheckRequest(const ChainModel& model, const Tensors& inputs,
                          const ProfileOptions& options) {
  if (!model.status().ok()) return model.status();
  if (model.length() == 0) return absl::InvalidArgumentError("the model has no stage");
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  const absl::Status status = model.CheckInputs(inputs);
  return status.ok() ? CheckPasses(options, inputs) : status;
}

// What stays for the whole step: side inputs, and gradients of those that ask for one.
Bytes BytesBeside(const Tensors& inputs, const CostMeter& costs) {
  Bytes bytes;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const Bytes block = costs.Block(Bytes(static_cast<int64_t>(inputs[i].nbytes())));
    bytes += block;
    if (inputs[i].requires_grad()) bytes += block;
  }
  return bytes;
}

absl::StatusOr<Chain> ChainOf(const ChainModel& model, const Tensors& inputs,
                              const Passes<StageSample>& passes, bool with_times,
                              const CostMeter& costs) {
  return MakeChain(model, Bytes(static_cast<int64_t>(inputs.front().nbytes())), passes, with_times,
                   BytesBeside(inputs, costs));
}

// That a plan would run which has memory for everything: all others are told against it.
absl::StatusOr<WholeStep> StoreAllStep(const ChainModel& model, const Tensors& inputs,
                                       const Tensors& targets, ExecutionDevice* device,
                                       const Passes<StageSample>& passes, const CostMeter& costs) {
  absl::StatusOr<Chain> chain = ChainOf(model, inputs, passes, /*with_times=*/false, costs);
  if (!chain.ok()) return chain.status();
  Schedule schedule = StoreAllSchedule(*chain);
  absl::StatusOr<std::unique_ptr<Executor>> made =
      Executor::Create(&model, *std::move(chain), std::move(schedule), device);
  if (!made.ok()) return made.status();
  const std::shared_ptr<Executor> executor = *std::move(made);
  return WholeStep{executor->prediction().peak,
                   [&model, inputs, targets, executor]() -> absl::StatusOr<Later<Nanos>> {
                     const StateGuard restore(model.buffers(), DeviceOf(inputs));
                     const absl::StatusOr<StepReport> step = executor->Step(inputs, targets);
                     if (!step.ok()) return step.status();
                     return step->wall_time;
                   }};
}

}  // namespace

absl::StatusOr<Profile> ProfileChain(const ChainModel& model, const Tensors& inputs,
                                     const Tensors& targets, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, inputs, options);
  if (!status.ok()) return status;
  const absl::StatusOr<ProfileMeters> meters = MakeProfileMeters(options);
  if (!meters.ok()) return meters.status();
  try {
    const UnusedMemory unused(options.device);
    status = CheckGradientRoom(model, options.device);
    if (!status.ok()) return status;
    const GradientsAside aside(model);
    model.EnsureGradients();
    CostMeter costs(meters->memory, meters->timer.get(), meters->granularity, DeviceOf(inputs));
    WholeSteps steps = MakeWholeSteps(options, inputs);
    absl::StatusOr<Passes<StageSample>> passes = RunPasses<StageSample>(
        options, 2 * (model.length() + 1),
        [&](bool watch, const std::function<void()>& stage_done) {
          return RunProfilePass(model, inputs, targets, &costs, watch, stage_done);
        },
        [&](const Passes<StageSample>& made) {
          return StoreAllStep(model, inputs, targets, options.device, made, costs);
        },
        &steps);
    if (!passes.ok()) return passes.status();
    FinishTimes(options, steps, 1, &*passes);
    absl::StatusOr<Chain> chain = ChainOf(model, inputs, *passes, !options.bytes_only, costs);
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
