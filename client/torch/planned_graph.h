// A network of any shape under autograd: see PlannedModule.
//
//   at::Tensor loss = planned->forward({input}, target);
//   loss.backward();
//
// The losses are nodes of the model, hence part of the plan.
#ifndef STOWAGE_CLIENT_TORCH_PLANNED_GRAPH_H_
#define STOWAGE_CLIENT_TORCH_PLANNED_GRAPH_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/execution_device.h"
#include "client/torch/graph_executor.h"
#include "client/torch/graph_model.h"
#include "client/torch/parameter_gradients.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Throws, and leaves what is left, as PlannedModule. Not thread-safe. Model and device must outlive it
// and every graph that hangs on what it returned.
class PlannedGraph {
 public:
  // As GraphExecutor::Create. UNIMPLEMENTED too where a backward comes before the first forward of a node
  // that nobody reads and that trains: it could be a loss, which has to be known before the caller's
  // backward begins.
  static absl::StatusOr<std::unique_ptr<PlannedGraph>> Create(const GraphModel* model, Graph graph,
                                                              Schedule schedule,
                                                              ExecutionDevice* device = nullptr);

  // The sum of all scalars that nobody reads, in an ordinary graph down to the parameters, in which autograd's own
  // backward moves through the plan (GraphCursor): autograd.grad and hooks find in it what they find in plain
  // training's. Where the plan's forwards or backwards come in another order than autograd's, the graph is one node
  // instead. The backward gives the parameters what plain training gives them; it runs once per forward, also if the
  // graph is kept. Several forwards may come before the first backward. An input that the caller holds on to stays in
  // memory also where the plan drops it, and the plan moves a copy; one that requires a gradient is refused.
  //
  // Under NoGradGuard the nodes run as they are, without a plan, and tensors go after their last reader.
  at::Tensor forward(std::vector<at::Tensor> inputs, const at::Tensor& target);

  // From the next forward on, during its backward; see ParameterGradients.
  void TellReadyGradients(OnGradientReady ready) {
    executor_->TellReadyGradients(std::move(ready));
  }

  // What the evaluator says about the schedule under the profile's costs.
  const Simulation& prediction() const { return executor_->prediction(); }

 private:
  PlannedGraph(const GraphModel* model, std::shared_ptr<GraphExecutor> executor,
               size_t first_backward)
      : model_(model), executor_(std::move(executor)), first_backward_(first_backward) {}

  const GraphModel* model_;
  std::shared_ptr<GraphExecutor> executor_;
  size_t first_backward_;  // instruction
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PLANNED_GRAPH_H_
