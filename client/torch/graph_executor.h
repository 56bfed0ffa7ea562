// Trains a model of any shape by a schedule over the vertices of its graph: carries out its
// instructions, one by one, and decides nothing.
//
// A schedule whose first forwards and backwards come in autograd's order is one forward in an ordinary graph and one
// backward (GraphCursor). Of any other schedule, each forward makes a graph of its own, and each BACKWARD is a call
// of autograd's engine.
#ifndef STOWAGE_CLIENT_TORCH_GRAPH_EXECUTOR_H_
#define STOWAGE_CLIENT_TORCH_GRAPH_EXECUTOR_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/execution_device.h"
#include "client/torch/graph_cursor.h"
#include "client/torch/graph_model.h"
#include "client/torch/graph_tensors.h"
#include "client/torch/node_runner.h"
#include "client/torch/parameter_gradients.h"
#include "client/torch/step_recorder.h"
#include "client/torch/step_report.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Not thread-safe. The model must outlive the executor and keep its nodes.
class GraphExecutor {
 public:
  // `graph` is the model's profile; device and errors as ChainExecutor::Create has them.
  static absl::StatusOr<std::unique_ptr<GraphExecutor>> Create(const GraphModel* model, Graph graph,
                                                               Schedule schedule,
                                                               ExecutionDevice* device = nullptr);

  // One step on the model's inputs, in order: as ChainExecutor::Step, the same errors and what they
  // leave. Gradients equal those of plain training bit for bit where the schedule keeps the order of
  // sums (solvers/schedule/gradient_sums.h), as those of all our solvers do. The loss is the sum of all
  // scalars that nobody reads. An input that the caller holds on to stays in memory also where the plan
  // drops it, but not while the plan has it on the host: its memory is taken away and given back as that of
  // ChainExecutor::Step.
  absl::StatusOr<StepReport> Step(std::vector<at::Tensor> inputs, const at::Tensor& target);

  // As ChainExecutor::TellReadyGradients.
  void TellReadyGradients(OnGradientReady ready) { gradient_ready_ = std::move(ready); }

  // As ChainExecutor::MeasureInto.
  void MeasureInto(MeasuredStep* step) { measured_ = step; }

  // What the evaluator says about the schedule under the profile's costs.
  const Simulation& prediction() const { return prediction_; }

 private:
  // Steps whose backward is begun by others.
  friend class PlannedGraph;
  friend class PlannedGraphRun;

  struct StepState {
    NodeRunner runner;
    GraphTensors tensors;
    std::vector<at::Tensor> sources;  // by vertex
    StepReport report;
    at::Tensor seed;  // what the losses' backwards start with; undefined: with 1
    size_t next = 0;  // instruction
    std::unique_ptr<StepRecorder> recorder = nullptr;
  };

  GraphExecutor(std::shared_ptr<const GraphPlan> plan, Simulation prediction);
  absl::Status CheckInputs(const std::vector<at::Tensor>& inputs) const;
  void ForwardSaving(int v, StepState* state);
  void RunForward(const Instruction& instruction, StepState* state);
  void RunBackward(int v, StepState* state);
  void Run(const Instruction& instruction, StepState* state);
  // `lent`: memory of inputs that others hold may be away until the step ends.
  StepState Begin(std::vector<at::Tensor> inputs, const at::Tensor& target, bool lent) const;
  // By vertex, tensors of inputs for a step. `lent` as of Begin.
  std::vector<at::Tensor> SourcesOf(std::vector<at::Tensor> inputs, const at::Tensor& target,
                                    bool lent) const;
  absl::StatusOr<StepReport> StepByAutograd(std::vector<at::Tensor> inputs,
                                            const at::Tensor& target);
  // Instructions up to, not with, `end`.
  absl::Status RunUpTo(size_t end, StepState* state);

  const std::shared_ptr<const GraphPlan> plan_;
  const GraphModel* const model_;
  const Graph& graph_;
  const Schedule& schedule_;
  ExecutionDevice* const device_;
  const bool in_engine_order_;
  Simulation prediction_;
  OnGradientReady gradient_ready_;
  MeasuredStep* measured_ = nullptr;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_GRAPH_EXECUTOR_H_
