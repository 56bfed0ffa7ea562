// One step by a plan under the caller's own backward: the nodes run forward in an ordinary graph, and autograd's engine
// moves a cursor through the plan.
//
// Between the nodes of the model stand nodes of the cursor's in the graph. When the engine comes to the one behind node
// v, the gradient of v's output is complete and v's own backward begins: the cursor carries out the plan up to that
// BACKWARD, so that what v's backward reads is held. What the plan drops, the graph finds again in the slots
// (SavedSlots) and storages (SharedData) of its saved tensors.
#ifndef STOWAGE_CLIENT_TORCH_GRAPH_CURSOR_H_
#define STOWAGE_CLIENT_TORCH_GRAPH_CURSOR_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/graph_model.h"
#include "client/torch/graph_tensors.h"
#include "client/torch/node_runner.h"
#include "client/torch/parameter_gradients.h"
#include "client/torch/planned_backward.h"
#include "client/torch/saved_slots.h"
#include "client/torch/step_recorder.h"
#include "client/torch/step_report.h"
#include "client/torch/step_run.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// What all steps of a plan share.
struct GraphPlan {
  const GraphModel* model;
  Graph graph;
  Schedule schedule;
  ExecutionDevice* device;
  // By vertex: whether extras, or a source's tensor, move.
  std::vector<bool> moves_extras;
  std::vector<bool> moves_source;
  std::vector<size_t> backward_at;  // by vertex, its BACKWARD
  std::vector<int> last_reader;     // by vertex, of those that train; -1 if there is none
  size_t first_backward = 0;
};

std::shared_ptr<const GraphPlan> MakeGraphPlan(const GraphModel* model, Graph graph,
                                               Schedule schedule, ExecutionDevice* device);

// Whether the engine's order is the plan's: nodes that train run forward first in program order, before the first
// BACKWARD, and backwards in reverse.
bool IsInEngineOrder(const GraphPlan& plan);

// The graph that it makes holds it. Not thread-safe; autograd may run the backward on a thread of its own.
class GraphCursor : public std::enable_shared_from_this<GraphCursor> {
 public:
  // `sources`: by vertex, tensors of inputs.
  GraphCursor(std::shared_ptr<const GraphPlan> plan, std::vector<at::Tensor> sources,
              const at::Tensor& target, OnGradientReady ready);

  // Up to the first BACKWARD. An error leaves nothing held.
  absl::Status Forward();
  // Scalars that nobody reads, in the caller's graph where they train; to be taken before their backward.
  std::vector<at::Tensor> TakeLosses();
  // A backward of all losses, without autocast, for callers who have no loss of their own. An error names the instruction.
  absl::Status Backward();

  // From now on; of the whole step where it is called first.
  void RecordInto(std::unique_ptr<StepRecorder> recorder) { recorder_ = std::move(recorder); }

  const StepReport& report() const { return report_; }
  StepRecorder* recorder() { return recorder_.get(); }
  // Lets go of all that is held; what lent sources have on the host comes back, or the error says that one is lost.
  absl::Status Release();
  const NodeRunner& runner() const { return runner_; }
  const HostCopies& copies() const { return tensors_.copies(); }

 private:
  class Boundary;
  class Passage;
  class TiedPassage;
  struct TiedSum {
    at::Tensor memory;  // undefined once a gradient has come
  };
  struct Tied {
    at::Tensor parameter;
    std::shared_ptr<torch::autograd::Node> accumulator;
    std::shared_ptr<TiedSum> sum;
  };
  struct Loss {
    double value;
    std::vector<int64_t> sizes;
    at::TensorOptions options;
    torch::autograd::Edge edge;
  };

  void Run(const Instruction& instruction);
  void RunForward(int v, bool saves);
  // Runs a forward of v, which returns its output or nothing if that has no memory of its own; keeps what of its
  // extras the plan moves.
  void RunForExtras(int v, bool saves, const std::function<at::Tensor()>& forward);
  at::Tensor FirstForward(int v, bool saves);
  at::Tensor ForwardAgain(int v, bool saves);
  std::vector<at::Tensor> InputsInGraph(int v) const;
  // Between v's own graph and what it reads; `number` is theirs among autograd's nodes.
  void InsertPassages(int v, const at::Tensor& output, uint64_t number);
  std::unordered_set<const c10::StorageImpl*> HeldByOthers(int v,
                                                           const std::vector<at::Tensor>& inputs,
                                                           const at::Tensor& output) const;
  // Up to BACKWARD v, which begins.
  void Reach(int v);
  void FinishBackward();
  void SkipBackward(int v);
  // What is left of the plan after the backward, which calls it where it ends well.
  absl::Status Finish();
  absl::Status RunUpTo(size_t end);
  InstructionRunner Runner();

  const std::shared_ptr<const GraphPlan> plan_;
  const GraphModel& model_;
  const at::Tensor target_;
  NodeRunner runner_;
  GraphTensors tensors_;
  std::vector<at::Tensor> sources_;
  std::vector<SavedSlots> slots_;                      // by vertex
  std::vector<std::shared_ptr<Boundary>> boundaries_;  // by vertex, while nodes run forward first
  std::vector<Loss> losses_;                           // their edges hold the cursor
  std::vector<bool> has_gradient_;                     // by vertex: some reader has given one
  std::unordered_map<const torch::autograd::Node*, Tied> tied_;  // by accumulator
  CompleteGradients complete_;
  // What is read again in the backward.
  TensorVersions parameters_;
  TensorVersions inputs_;
  StepReport report_;
  std::unique_ptr<StepRecorder> recorder_;
  absl::Status failure_;
  size_t next_ = 0;           // instruction
  bool in_backward_ = false;  // the engine carries out number next_
  bool told_to_finish_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_GRAPH_CURSOR_H_
