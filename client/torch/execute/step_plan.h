// A plan as steps carry it out: what all steps of it share. A chain is a graph whose nodes are in line.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_STEP_PLAN_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_STEP_PLAN_H_

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/torch/execute/held_tensors.h"
#include "client/torch/execute/movable_parts.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Of backwards of the caller's that go through a plan. Thread-safe.
class OpenBackwards {
 public:
  void Begin() { ++open_; }
  void End() {
    int open = open_;
    while (open > 0 && !open_.compare_exchange_weak(open, open - 1)) {
    }
  }
  // Whether some have begun and not ended, because they threw or are not done; forgets them.
  bool Take() { return open_.exchange(0) > 0; }

 private:
  std::atomic<int> open_{0};
};

// Safe to share between threads as far as the model is; but for what steps note, immutable.
struct StepPlan {
  // One of the two is the problem.
  std::shared_ptr<const Chain> chain;
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const GraphModel> model;
  Schedule schedule;
  ExecutionDevice* device = nullptr;
  // Whether tensors of nodes go to the caller, who has a loss of his own; else losses are nodes of the model. The
  // instructions of a chain's loss then only stand for what its backward drops.
  bool callers_loss() const { return !model->outputs().empty(); }
  // How instructions are named to people, by the numbers that they have.
  std::vector<std::string> names;
  std::vector<std::string> side_inputs;  // of a chain
  // By node.
  std::vector<bool> moves_extras;   // what it saves moves, as a whole or in parts
  std::vector<bool> moves_parts;    // some of that moves singly
  std::vector<bool> moves_source;   // the tensor of an input moves
  std::vector<bool> saves_nothing;  // of its own
  std::vector<bool>
      never_drops;              // runs forward once, saves, and all of that stays for its backward
  std::vector<bool> runs_once;  // forward
  std::vector<bool> owns_memory;
  std::vector<bool> recomputable;
  std::vector<std::vector<size_t>> parameters;  // numbers among the model's
  // By instruction: a recompute that stops early.
  std::vector<bool> stops;
  std::vector<size_t> backward_at;  // the instruction; that of a chain's input is the end
  PerOutput<int> last_reader;       // of those that train; -1 if there is none
  size_t first_backward = 0;        // where the caller's backward begins
  // Whether the engine's order is the plan's: nodes that train run forward first in program order, before the first
  // BACKWARD, and backwards in reverse. Of a chain it always is.
  bool in_engine_order = true;
  mutable OpenBackwards open_backwards;
  mutable WarmNodes warm_nodes;

  // The node of an instruction; one more than there are for the loss of a chain where the caller has his own.
  int NodeOf(const Instruction& instruction) const { return instruction.stage - (chain ? 0 : 1); }
  int NumberOf(int v) const { return v + (chain ? 0 : 1); }
  const std::string& Name(int number) const { return names[static_cast<size_t>(number)]; }
  const std::string& NameOf(int v) const { return Name(NumberOf(v)); }
  // Whether recomputes of v may stop early.
  bool MayStop(int v) const {
    if (chain) return chain->stage(v).stops();
    return graph->vertex(v).stops() && graph->vertex(v).extra_saved > Bytes(0);
  }
  // Whether nothing that v saves is ever dropped, moved or made again.
  bool SavesForGood(int v) const {
    const auto node = static_cast<size_t>(v);
    return never_drops[node] || (runs_once[node] && saves_nothing[node] && !moves_extras[node]);
  }
  // The node in whose memory v lives.
  int OwnerOf(int v) const { return chain ? v : graph->storage(v); }
  // Of the tensors of its node, at most; nothing where only the batch says it, as of a chain's side inputs.
  std::optional<Bytes> SourceBytes(NodeOutput input) const;
  // "the input", "the side input mask", "node 0 (image, Input)".
  std::string NameOfSource(NodeOutput input) const;
  std::unique_ptr<HeldTensors> HoldNothing() const;
};

// The schedule must be one that the evaluator accepts; the model outlives the plan.
std::shared_ptr<const StepPlan> MakeGraphPlan(const GraphModel* model, Graph graph,
                                              Schedule schedule, ExecutionDevice* device);
// `callers_loss`: at this place of the schedule stand a saving forward of the loss and its backward, for which the
// caller's come; -1: the loss is the model's.
std::shared_ptr<const StepPlan> MakeChainPlan(const ChainModel& model, Chain chain,
                                              Schedule schedule, ExecutionDevice* device,
                                              int callers_loss = -1);

// A tensor of an input, as a step may use it: itself, without a graph, or a copy where the plan takes away memory that
// is somebody else's for good. `lent`: memory that others hold may be away until the step ends.
at::Tensor SourceFor(const StepPlan& plan, NodeOutput from, at::Tensor input,
                     const std::vector<at::Tensor>& targets, bool lent);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_STEP_PLAN_H_
