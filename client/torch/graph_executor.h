// Trains a model of any shape by a schedule over the vertices of its graph: carries out its
// instructions, one by one, and decides nothing.
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

  GraphExecutor(const GraphModel* model, Graph graph, Schedule schedule, Simulation prediction,
                ExecutionDevice* device);
  absl::Status CheckInputs(const std::vector<at::Tensor>& inputs) const;
  void ForwardSaving(int v, StepState* state);
  void RunForward(const Instruction& instruction, StepState* state);
  void RunBackward(int v, StepState* state);
  void Run(const Instruction& instruction, StepState* state);
  // `lent`: memory of inputs that others hold may be away until the step ends.
  StepState Begin(std::vector<at::Tensor> inputs, const at::Tensor& target, bool lent) const;
  // Instructions up to, not with, `end`.
  absl::Status RunUpTo(size_t end, StepState* state);

  const GraphModel* model_;
  Graph graph_;
  Schedule schedule_;
  Simulation prediction_;
  ExecutionDevice* device_;
  // By vertex: whether extras, or a source's tensor, move.
  std::vector<bool> moves_extras_;
  std::vector<bool> moves_source_;
  OnGradientReady gradient_ready_;
  MeasuredStep* measured_ = nullptr;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_GRAPH_EXECUTOR_H_
