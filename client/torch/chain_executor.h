// Trains a model by a schedule: carries out its instructions, one by one, and decides nothing.
#ifndef STOWAGE_CLIENT_TORCH_CHAIN_EXECUTOR_H_
#define STOWAGE_CLIENT_TORCH_CHAIN_EXECUTOR_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/batch_shape.h"
#include "client/torch/chain_model.h"
#include "client/torch/held_tensors.h"
#include "client/torch/memory_meter.h"
#include "client/torch/stage_runner.h"
#include "client/torch/step_report.h"
#include "solvers/model/chain.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

// Not thread-safe. The model must outlive the executor and keep its stages.
class ChainExecutor {
 public:
  // `chain` is the model's profile, `meter` null for the installed TrackingAllocator.
  // INVALID_ARGUMENT: the chain is not that of the model, or the referee does not accept the
  // schedule on it. UNIMPLEMENTED: the schedule has transfers, or communication beside compute; the
  // message names the first.
  // FAILED_PRECONDITION: nothing measures memory.
  //
  // `batch` is what the chain was profiled with; without it Step knows only the input's bytes.
  static absl::StatusOr<std::unique_ptr<ChainExecutor>> Create(
      const ChainModel* model, Chain chain, Schedule schedule, MemoryMeter* meter = nullptr,
      std::optional<BatchShape> batch = std::nullopt);

  // One step: adds to the parameters' gradients what a plain step adds, updates buffers and random
  // state as it does.
  //
  // INVALID_ARGUMENT, before anything runs, for an input that is larger than the profile's or a
  // batch that does not fit into the one of Create. RESOURCE_EXHAUSTED if the device ran out of
  // memory, INVALID_ARGUMENT for a stage that breaks a rule of ChainModel, INTERNAL for any other
  // exception of a stage; the message names instruction and stage. After such an error nothing of
  // the step is held, buffers and random state are what they were before it, and the gradients are
  // undefined: zero them (ChainModel::ZeroGradients); then the next step is as good as any.
  absl::StatusOr<StepReport> Step(const at::Tensor& input, const at::Tensor& target);

  // What the referee says about the schedule under the profile's costs.
  const Simulation& prediction() const { return prediction_; }

 private:
  struct StepState;

  ChainExecutor(const ChainModel* model, Chain chain, Schedule schedule, Simulation prediction,
                MemoryMeter* meter, std::optional<BatchShape> batch);
  absl::Status CheckBatch(const at::Tensor& input, const at::Tensor& target) const;
  void RunForward(const Instruction& instruction, StepState* state);
  void Run(const Instruction& instruction, StepState* state);
  absl::Status RunAll(StepState* state);

  const ChainModel* model_;
  Chain chain_;
  Schedule schedule_;
  Simulation prediction_;
  MemoryMeter* meter_;
  std::optional<BatchShape> batch_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_CHAIN_EXECUTOR_H_
