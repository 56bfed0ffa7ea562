// One step by a plan under the caller's own backward: the nodes run forward in an ordinary graph, and autograd's engine
// moves a cursor through the plan.
//
// Between the nodes of the model stand nodes of the cursor's in the graph, one behind each tensor that node v makes.
// When the engine comes to the first of them, the gradients of v's outputs are complete and v's own backward begins:
// the cursor carries out the plan up to that BACKWARD, so that what v's backward reads is held. What no gradient
// comes to, the engine passes by, as in a plain graph. What the plan drops, the graph finds again in the slots
// (SavedSlots) and storages (SharedData) of its saved tensors. Stages of chains are nodes in line.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_PLAN_CURSOR_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_PLAN_CURSOR_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>
#include <torch/csrc/autograd/function.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/base/autograd_node.h"
#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/tensors.h"
#include "client/torch/execute/backward_end.h"
#include "client/torch/execute/gradient_passages.h"
#include "client/torch/execute/held_tensors.h"
#include "client/torch/execute/loss_value.h"
#include "client/torch/execute/new_gradients.h"
#include "client/torch/execute/node_runner.h"
#include "client/torch/execute/parameter_gradients.h"
#include "client/torch/execute/saved_slots.h"
#include "client/torch/execute/step_plan.h"
#include "client/torch/execute/step_recorder.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/execute/step_run.h"
#include "client/torch/execute/tensor_versions.h"
#include "client/torch/memory/memory_refusal.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/offload/later.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Where the engine's order is not the plan's (IsInEngineOrder), each node has a graph of its own, and the cursor runs its
// backward where the plan has it: all of that is one node in the caller's graph, behind the losses.
//
// The graph that it makes holds it. Not thread-safe; autograd may run the backward on a thread of its own.
class PlanCursor : public std::enable_shared_from_this<PlanCursor> {
 public:
  // `sources`: tensors of the model's inputs (SourceFor), in their order. `edges`: where their gradients go, invalid or
  // left out where they ask for none. `keeps`: holds the sources to its end, so that a kept graph may be gone
  // through again; else it may while others hold them. `once`: nobody asks for a second backward.
  struct Inputs {
    std::vector<at::Tensor> sources;
    torch::autograd::edge_list edges;
    bool keeps = false;
    bool once = false;
  };
  PlanCursor(std::shared_ptr<const StepPlan> plan, Inputs inputs, Tensors targets,
             OnGradientReady ready);
  ~PlanCursor();

  // Up to the first BACKWARD. An error leaves nothing held.
  absl::Status Forward();
  // Scalars that nobody reads, in the caller's graph where they train; to be taken before their backward.
  std::vector<at::Tensor> TakeLosses();
  // What the model's outputs made, in the caller's graph where they train. The caller may hold it longer than the plan
  // does.
  std::vector<at::Tensor> TakeOutputs();
  // A backward of all losses, without autocast, for callers who have no loss of their own. An error names the instruction.
  absl::Status Backward();

  // Measures the step from now on, `input` bytes of which are the inputs'; `by_instruction`: also each instruction, of a
  // step whose parameters have gradients (EnsureGradients).
  void Measure(Bytes input, bool by_instruction);
  // Once the forward is made: tells of a step that is measured.
  void TellOf(OnStepEnd ended) { ended_ = std::move(ended); }
  // Of a step that is measured and has ended well. Waits for nothing.
  void FinishMeasuring();
  StepEnd MeasuredEnd() const;

  // What an instruction threw, of a step that failed; null where it is not that.
  const std::exception_ptr& thrown() const { return thrown_; }
  // Lets go of all that is held; what lent sources have on the host comes back, or the error says that one is lost.
  absl::Status Release();

 private:
  class Boundary;
  class WholeBackward;
  struct Output {
    NodeOutput made;
    NodePtrTo<Boundary> boundary;  // holds the cursor
    c10::VariableVersion version;
    at::Tensor kept;  // once the plan does not hold it
  };
  struct Loss {
    NodeOutput made;
    double value;
    at::Tensor on_host;  // the same where the device may not have it yet
    std::vector<int64_t> sizes;
    at::TensorOptions options;
    torch::autograd::Edge edge;
  };

  void Run(const Instruction& instruction);
  void RunForward(const Instruction& instruction);
  void AddLosses(int v);
  void AddLoss(NodeOutput made);
  // Before the plan takes away what lives in the memory of v: outputs stay the caller's.
  void KeepOutputsIn(int v);
  void NoteOutputs(int v, const std::vector<at::Tensor>& made);
  // Of the graph that a forward of v has made.
  std::vector<torch::autograd::Node*> NodesIn(int v, const std::vector<at::Tensor>& outputs) const;
  // Tensors of an input.
  void PutSources(int v);
  // Those that were put there, as far as somebody holds them. Throws where nobody does.
  void TakeSourcesBack();
  // Runs a forward of v, which leaves its outputs in `*outputs`; keeps what of its extras the plan moves.
  void RunForExtras(int v, bool saves, const std::vector<at::Tensor>* outputs,
                    absl::FunctionRef<void()> forward);
  // Sees to what autograd saves of `forward`, a first one of v, which returns its outputs.
  std::vector<at::Tensor> Record(int v, bool saves, const std::vector<at::Tensor>& inputs,
                                 absl::FunctionRef<std::vector<at::Tensor>()> forward);
  std::vector<at::Tensor> FirstForward(int v, bool saves);
  std::vector<at::Tensor> FirstForwardAlone(int v, bool saves);
  std::vector<at::Tensor> ForwardAgain(int v, bool saves);
  void PutBoundaries(int v, const std::vector<at::Tensor>& outputs,
                     const std::vector<torch::autograd::Node*>& nodes, uint64_t number);
  // Again, for what v saves alone.
  void ForwardStopped(int v);
  std::vector<at::Tensor> ValuesOfInputs(int v) const;
  std::vector<at::Tensor> InputsInGraph(int v) const;
  at::Tensor& GradientOf(NodeOutput made) { return gradients_[runner_.GradientOwner(made)]; }
  // Between v's own graph and what it reads; `number` is theirs among autograd's nodes.
  void InsertPassages(int v, const std::vector<torch::autograd::Node*>& nodes, uint64_t number);
  // All that is held when a step begins.
  void Begin();
  // The same where the caller goes through a graph again that he kept.
  void BeginAgain();
  // Up to the BACKWARD of a node, which begins, with the gradient of something that it made.
  void Reach(NodeOutput made, const at::Tensor& gradient);
  bool IsInBackwardOf(int v) const;
  void FinishBackward();
  void SkipBackward(int v);
  // That of v where the engine's order is not the plan's.
  void RunOwnBackward(int v);
  // All of them, from the gradients of losses.
  void BackwardFrom(const std::vector<NodeOutput>& losses, std::vector<at::Tensor> gradients);
  // Of a backward that comes to a node of the cursor's. Null: the graph let go of it.
  static void CheckMayRun(const PlanCursor* cursor);
  // Of the caller's backward, which begins.
  void CheckMayBegin() const;
  // What v reads may be written over in the backward, too: by a hook, or by an optimizer there.
  void CheckMayRunAgain(int v) const;
  // What is left of the plan after the backward, which calls it where it ends well.
  absl::Status Finish();
  void EndBackward(bool well);
  // Once, whoever is to be told.
  void Tell(const absl::Status& status);
  absl::Status WhyNotEnded(const absl::Status& otherwise) const;
  absl::Status RunUpTo(size_t end);
  InstructionRunner Runner();

  const std::shared_ptr<const StepPlan> plan_;
  const GraphModel& model_;
  const Tensors targets_;
  NodeRunner runner_;
  Inputs inputs_;
  std::vector<WeakTensor> put_;  // sources that went where the plan has them
  std::unique_ptr<HeldTensors> tensors_;
  std::vector<SavedSlots> slots_;              // by vertex
  PerOutput<NodePtrTo<Boundary>> boundaries_;  // while nodes run forward first
  std::vector<Loss> losses_;                   // their edges hold the cursor
  LossValue loss_;
  std::vector<Output> outputs_;
  std::optional<GradientPassages> passages_;  // where the engine's order is the plan's
  // Where the engine's order is not the plan's: the own graph of each vertex, and gradients as far as they are known.
  std::vector<SavedNode> own_graphs_;
  PerOutput<at::Tensor> gradients_;
  OnGradientReady ready_;
  CompleteGradients complete_;
  // What is read again in the backward.
  TensorVersions parameter_versions_;
  TensorVersions input_versions_;
  StepReport report_;
  std::optional<StepMeter> meter_;
  std::optional<NewGradients> new_gradients_;
  Bytes base_;  // live before the step
  std::optional<RefusalWatch> refusals_;
  std::shared_ptr<StepRecorder> recorder_;  // with what is read of it later
  OnStepEnd ended_;
  bool runs_backward_ = false;  // itself: failures of it are its own
  bool starts_ = false;         // so do losses, with ones
  absl::Status failure_;
  std::exception_ptr thrown_;
  size_t next_ = 0;                         // instruction
  bool in_backward_ = false;                // the engine carries out number next_
  std::vector<at::Tensor> held_gradients_;  // of what its node made
  bool told_to_finish_ = false;
};

// A whole step, `input_bytes` of which are the inputs', and what it took in `*measured`, unless that is null. An error
// leaves nothing held; buffers and random state are then what they were.
absl::StatusOr<StepReport> RunStep(const std::shared_ptr<const StepPlan>& plan,
                                   std::vector<at::Tensor> sources, const Tensors& targets,
                                   Bytes input_bytes, const OnGradientReady& ready,
                                   Later<MeasuredStep>* measured);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_PLAN_CURSOR_H_
