// Trains a model by a schedule: carries out its instructions, one by one, and decides nothing.
//
// A step is one forward in an ordinary graph and one backward, where the schedule's first forwards and backwards come in
// autograd's order, as those of chains do; of any other schedule each node has a graph of its own (PlanCursor).
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_EXECUTOR_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_EXECUTOR_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/execute/parameter_gradients.h"
#include "client/torch/execute/step_plan.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/later.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Not thread-safe. The model must outlive the executor and keep its stages or nodes.
class Executor {
 public:
  // The problem is the model's profile, `device` null for one without a link whose memory the installed
  // TrackingAllocator counts; it must outlive the executor. `batch` is what the chain was profiled with; without it
  // Step knows only the input's bytes, and nothing of targets and of a chain's side inputs, which the plan counts as
  // the profile saw them.
  //
  // INVALID_ARGUMENT: the problem is not that of the model, or the evaluator does not accept the schedule on it, by the
  // device's link. UNIMPLEMENTED: the schedule has communication beside compute, or saves something of a stage of a
  // chain after its backward; FAILED_PRECONDITION: it has transfers and the device no link (the message names the first
  // instruction), or nothing measures memory.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(
      const ChainModel* model, Chain chain, Schedule schedule, ExecutionDevice* device = nullptr,
      std::optional<BatchShape> batch = std::nullopt);
  static absl::StatusOr<std::unique_ptr<Executor>> Create(const GraphModel* model, Graph graph,
                                                          Schedule schedule,
                                                          ExecutionDevice* device = nullptr);

  // One step on the model's inputs, in order, of a chain the input and its side inputs: adds to the parameters'
  // gradients what a plain step adds, updates buffers and random state as it does. Of a graph the loss is the sum of
  // all scalars that nobody reads; gradients equal those of plain training bit for bit where the schedule keeps the
  // order of sums (solvers/schedule/gradient_sums.h), as those of all our solvers do. A parameter without a gradient
  // gets the first that comes, which is no part of StepReport::peak, or a zeroed one before where instructions are
  // measured or come in another order than autograd's.
  //
  // It waits for nothing that plain training does not wait for: loss and time come later (StepReport), as does what goes
  // wrong on the device meanwhile, in whatever waits for it first.
  //
  // An input that the caller holds stays in memory where the plan drops it. A schedule that moves it takes its memory away
  // until Step returns. Of a part of a larger tensor, of the target, and of memory of another allocator it moves a copy.
  //
  // Before anything runs: FAILED_PRECONDITION in a CUDA graph's capture, UNIMPLEMENTED for forward-mode gradients and
  // transforms of torch.func, INVALID_ARGUMENT for a model with outputs, whose loss is the caller's, and for inputs that
  // are larger than the profile's or not as the batch of Create. RESOURCE_EXHAUSTED out of memory; INVALID_ARGUMENT for what breaks
  // a rule of its model or whose saved tensors are not those of the profile, INTERNAL for any other exception of one and
  // for copies that fail; the message names instruction and stage, GetStepFailure (client/torch/execute/step_failure.h) tells
  // more. After such an error nothing of the step is held, buffers and random state are what they were before it, and
  // the gradients are undefined: zero them (ModelTensors::ZeroGradients); then the next step is as good as any.
  absl::StatusOr<StepReport> Step(std::vector<at::Tensor> inputs, const Tensors& targets);
  // Of a model with one input. Unlike a list in braces, which holds a second reference, it can be moved.
  absl::StatusOr<StepReport> Step(at::Tensor input, const Tensors& targets) {
    std::vector<at::Tensor> inputs;
    inputs.push_back(std::move(input));
    return Step(std::move(inputs), targets);
  }

  // From the next step on. It may throw; the step then fails.
  void TellReadyGradients(OnGradientReady ready) { gradient_ready_ = std::move(ready); }

  // From the next step on each Step that ends well leaves in `*step`, which outlives it, what its
  // instructions took, which comes later, as its time does (StepReport); null: none does.
  void MeasureInto(Later<MeasuredStep>* step) { measured_ = step; }

  // What the evaluator says about the schedule under the profile's costs.
  const Simulation& prediction() const { return prediction_; }

 private:
  // Steps whose backward is begun by others.
  friend class PlannedModule;

  Executor(std::shared_ptr<const StepPlan> plan, Simulation prediction,
           std::optional<BatchShape> batch)
      : plan_(std::move(plan)), prediction_(prediction), batch_(std::move(batch)) {}
  // `callers_loss` as of MakeChainPlan.
  static absl::StatusOr<std::unique_ptr<Executor>> OfChain(const ChainModel* model, Chain chain,
                                                           Schedule schedule, int callers_loss,
                                                           ExecutionDevice* device,
                                                           std::optional<BatchShape> batch);
  absl::Status CheckInputs(const std::vector<at::Tensor>& inputs) const;
  // Tensors of inputs for a step. `lent`: memory of inputs that others hold may be away until the step ends.
  std::vector<at::Tensor> SourcesOf(std::vector<at::Tensor> inputs, const Tensors& targets,
                                    bool lent) const;

  const std::shared_ptr<const StepPlan> plan_;
  Simulation prediction_;
  std::optional<BatchShape> batch_;
  OnGradientReady gradient_ready_;
  Later<MeasuredStep>* measured_ = nullptr;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_EXECUTOR_H_
