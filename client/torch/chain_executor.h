// Trains a model by a schedule: carries out its instructions, one by one, and decides nothing.
#ifndef STOWAGE_CLIENT_TORCH_CHAIN_EXECUTOR_H_
#define STOWAGE_CLIENT_TORCH_CHAIN_EXECUTOR_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/batch_shape.h"
#include "client/torch/chain_model.h"
#include "client/torch/execution_device.h"
#include "client/torch/held_tensors.h"
#include "client/torch/parameter_gradients.h"
#include "client/torch/stage_runner.h"
#include "client/torch/step_recorder.h"
#include "client/torch/step_report.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Not thread-safe. The model must outlive the executor and keep its stages.
class ChainExecutor {
 public:
  // `chain` is the model's profile, `device` null for one without a link whose memory the installed
  // TrackingAllocator counts; it must outlive the executor.
  // INVALID_ARGUMENT: the chain is not that of the model, or the evaluator does not accept the
  // schedule on it, by the device's link. UNIMPLEMENTED: the schedule has communication beside compute,
  // FAILED_PRECONDITION: it has transfers and the device no link (the message names the first
  // instruction), or nothing measures memory.
  //
  // `batch` is what the chain was profiled with; without it Step knows only the input's bytes.
  static absl::StatusOr<std::unique_ptr<ChainExecutor>> Create(
      const ChainModel* model, Chain chain, Schedule schedule, ExecutionDevice* device = nullptr,
      std::optional<BatchShape> batch = std::nullopt);

  // One step: adds to the parameters' gradients what a plain step adds, updates buffers and random
  // state as it does. A schedule that moves a^0 takes the input's memory away while the step runs: it
  // is back when Step returns, elsewhere. Of an input that is part of a larger tensor, that is the target as
  // well, or whose memory is not the device's allocator's, it moves a copy.
  //
  // INVALID_ARGUMENT, before anything runs, for an input that is larger than the profile's or a
  // batch that does not fit into the one of Create. RESOURCE_EXHAUSTED if device or host ran out
  // of memory, INVALID_ARGUMENT for a stage that breaks a rule of ChainModel or whose saved tensors are not
  // those of the chain, INTERNAL for any other exception of a stage and for copies that fail; the message names instruction and
  // stage, GetStepFailure (client/torch/step_failure.h) tells more. After such an error nothing of
  // the step is held, buffers and random state are what they were before it, and the gradients are
  // undefined: zero them (ChainModel::ZeroGradients); then the next step is as good as any.
  absl::StatusOr<StepReport> Step(const at::Tensor& input, const at::Tensor& target);

  // From the next step on. It may throw; the step then fails.
  void TellReadyGradients(OnGradientReady ready) { gradient_ready_ = std::move(ready); }

  // From the next step on each Step that ends well leaves in `*step`, which outlives it, what its
  // instructions took; null: none does. A step that is measured waits at its end for the device.
  void MeasureInto(MeasuredStep* step) { measured_ = step; }

  // What the evaluator says about the schedule under the profile's costs.
  const Simulation& prediction() const { return prediction_; }

 private:
  // Steps whose loss is computed by others.
  friend class PlannedModule;
  friend class PlannedRun;

  struct StepState {
    StageRunner runner;
    HeldTensors held;
    at::Tensor gradient;  // of the activation whose backward is next
    StepReport report;
    size_t next = 0;  // instruction
    std::unique_ptr<StepRecorder> recorder = nullptr;
  };

  ChainExecutor(const ChainModel* model, Chain chain, Schedule schedule, Simulation prediction,
                ExecutionDevice* device, std::optional<BatchShape> batch);
  absl::Status CheckInput(const at::Tensor& input) const;
  void RunForward(const Instruction& instruction, StepState* state);
  std::vector<StoragePtr> ForwardSaving(int l, StepState* state, SavedForward* saved);
  void Run(const Instruction& instruction, StepState* state);
  // Instructions up to, not with, `end`.
  absl::Status RunUpTo(size_t end, StepState* state);

  const ChainModel* model_;
  Chain chain_;
  Schedule schedule_;
  Simulation prediction_;
  ExecutionDevice* device_;
  std::optional<BatchShape> batch_;
  OnGradientReady gradient_ready_;
  MeasuredStep* measured_ = nullptr;
  // By stage: whether saved tensors move, and whether some of them do so singly.
  std::vector<bool> moves_saved_;
  std::vector<bool> moves_parts_;
  bool moves_input_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CHAIN_EXECUTOR_H_
