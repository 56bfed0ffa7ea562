// A model under autograd: training loops stay as they are, and the memory of their steps is planned.
//
//   auto planned = stowage::PlannedModule::Create(&model, chain, schedule).value();
//   at::Tensor loss = criterion(planned->forward(input), target);
//   loss.backward();
//
// Of a chain the loss is the caller's. A schedule also runs that of the profile, stage L+1, so its place is taken:
// forward() carries out what comes before the saving forward of stage L+1, then the caller's loss runs forward and
// backward, and what it gives to the output starts the rest. Where a schedule has that forward and the backward of L+1
// apart, or runs L+1 more than once, they are moved to stand together before the backward; prediction() is of what is
// carried out. Of a graph it is the caller's where the model has outputs (GraphModel::MarkOutput); else the losses are nodes
// of the model, hence part of the plan, and forward() takes the target.
//
// Of a graph's outputs a plan has their memory, and that of a gradient from where a reader in the model gives one, or else
// from the output's own backward on. What the caller's loss makes, saves, and gives to outputs before that is his.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_PLANNED_MODULE_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_PLANNED_MODULE_H_

#include <ATen/core/Tensor.h>

#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/execute/backward_end.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/parameter_gradients.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Unlike the rest of client/torch it throws, as modules do, in forward() and out of backward(): what a stage throws that is
// a std::exception, as it was thrown, and exceptions of LibTorch's with instruction and stage among their words;
// c10::OutOfMemoryError where host memory ran out, c10::Error that names instruction and stage for rules that a stage breaks.
// What fails leaves nothing held, and random state and buffers as they were before it; after a backward that failed zero
// the gradients. What autograd itself still has of that goes with the next forward() on the thread, or with the module.
//
// Not thread-safe. Model and device must outlive the module and every graph that hangs on what it
// returned.
class PlannedModule {
 public:
  ~PlannedModule();

  // As Executor::Create. What of a chain's loss the schedule moves to the host is not moved.
  static absl::StatusOr<std::unique_ptr<PlannedModule>> Create(
      const ChainModel* model, Chain chain, const Schedule& schedule,
      ExecutionDevice* device = nullptr, std::optional<BatchShape> batch = std::nullopt);
  // UNIMPLEMENTED too where a backward comes before the first forward of a node that nobody reads and that trains: it
  // could be a loss, which has to be known before the caller's backward begins.
  static absl::StatusOr<std::unique_ptr<PlannedModule>> Create(const GraphModel* model, Graph graph,
                                                               Schedule schedule,
                                                               ExecutionDevice* device = nullptr);

  // The output of stage L or of a graph's one output, or the sum of all scalars that nobody reads, in an ordinary graph
  // down to the parameters, in which autograd's own backward moves through the plan (PlanCursor): autograd.grad and hooks
  // find in it what they find in plain training's. Where the plan's forwards or backwards come in another order than
  // autograd's, the graph is one node instead. Random state and buffers change as in plain training.
  //
  // Each call holds what its backward needs, until that has run or the graph on the output is gone; so there may be
  // several before the first backward. The output is the caller's: what he keeps of it after the loss is memory that the
  // plan does not have. So is an input that he keeps, where the plan drops it or has it on the host: it moves a copy
  // then, which forward(std::move(input)) spares.
  //
  // A backward adds to the gradients of the parameters what plain training adds, or makes it one where there is none,
  // under the autocast of the forward, and gives one to a chain's input and side inputs, if they ask: the profile
  // must know that. A second backward without retain_graph is an error; with it, all runs again from the inputs on, which is
  // an error where a stage or node must not run twice, and of a graph where nobody holds an input any more, or its plan's
  // order is not autograd's. So is a parameter or an input written over between forward and backward, a gradient of
  // gradients, an input of a graph that asks for one, and more outputs than one.
  //
  // Under NoGradGuard, or where nothing is to be trained, the model runs as it is, without a plan.
  at::Tensor forward(std::vector<at::Tensor> inputs, const Tensors& targets = {});
  // Of a model with one input. Unlike a list in braces, which holds a second reference, it can be moved.
  at::Tensor forward(at::Tensor input, const Tensors& targets = {}) {
    std::vector<at::Tensor> inputs;
    inputs.push_back(std::move(input));
    return forward(std::move(inputs), targets);
  }
  // The same with all outputs, in the order in which they were marked; of a chain all that stage L makes. Undefined where
  // it makes none.
  std::vector<at::Tensor> ForwardAll(std::vector<at::Tensor> inputs, const Tensors& targets = {});

  // The same for those who want to know what becomes of the step: measured from here on, instruction by instruction where
  // `measures` says so, and told of to `ended`, unless this fails. An error is that of Executor::Step.
  absl::StatusOr<std::vector<at::Tensor>> BeginStep(std::vector<at::Tensor> inputs,
                                                    const Tensors& targets, bool measures,
                                                    OnStepEnd ended);

  // From the next forward on, during its backward; see ParameterGradients.
  void TellReadyGradients(OnGradientReady ready) {
    executor_->TellReadyGradients(std::move(ready));
  }

  // What the evaluator says, of a chain were the caller's loss that of the profile.
  const Simulation& prediction() const { return executor_->prediction(); }

 private:
  explicit PlannedModule(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}
  void EmptyQueuesAfterFailure() const;
  // Who is told of a step.
  struct Listener {
    bool measures = false;
    OnStepEnd ended;
  };
  absl::Status CheckInputs(const std::vector<at::Tensor>& inputs) const;
  bool Trains(const std::vector<at::Tensor>& inputs) const;
  std::vector<at::Tensor> ForwardWithoutPlan(std::vector<at::Tensor> inputs,
                                             const Tensors& targets) const;
  // `listener` may be null. What an error was thrown as is in `*thrown`, or null there.
  absl::StatusOr<std::vector<at::Tensor>> ForwardByPlan(std::vector<at::Tensor> inputs,
                                                        const Tensors& targets,
                                                        const Listener* listener,
                                                        std::exception_ptr* thrown) const;

  std::unique_ptr<Executor> executor_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_PLANNED_MODULE_H_
