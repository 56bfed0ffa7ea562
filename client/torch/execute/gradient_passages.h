// Where gradients of a planned step lie while its backward runs: nodes of autograd's on the edges between the graphs of the
// model's nodes, which give what comes there the memory that the plan counts. Autograd would let gradients share theirs.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_GRADIENT_PASSAGES_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_GRADIENT_PASSAGES_H_

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "client/torch/base/autograd_node.h"
#include "client/torch/execute/held_tensors.h"
#include "client/torch/execute/new_gradients.h"
#include "client/torch/execute/step_plan.h"
#include "client/torch/model/graph_model.h"

namespace stowage {

// Of one step whose backwards come in the engine's order. Throws what LibTorch throws; not thread-safe.
class GradientPassages {
 public:
  // Where the gradient of a tensor comes together.
  struct End {
    NodePtr boundary;
    NodeOutput made;
  };

  // `tensors` outlives the object. Sums of tied parameters have their memory from here on.
  GradientPassages(const StepPlan& plan, const HeldTensors* tensors);

  // On edges of one node's own graph: `nodes` of autograd's, with lower numbers than theirs from `number` down. `ends` are
  // those of its inputs that no later node reads. `first`, unless it is null, sees first gradients of parameters.
  void Insert(const std::vector<torch::autograd::Node*>& nodes, uint64_t number,
              const std::vector<End>& ends, const NewGradients* first) const;

  // What comes to this tensor from now on is a sum, in memory of its own.
  void HasGradient(NodeOutput made) { state_->has_gradient[made] = 1; }
  // Nothing has one, of a backward that begins once more.
  void BeginAgain(const GraphModel& model) { state_->has_gradient = model.ForEachOutput<char>(); }

 private:
  class Passage;
  class TiedPassage;
  struct State {
    const HeldTensors* tensors;
    bool chain;
    PerOutput<char> has_gradient;
  };
  struct TiedSum {
    at::Tensor memory;  // undefined once a gradient has come
  };
  struct Tied {
    at::Tensor parameter;
    NodePtr accumulator;
    std::shared_ptr<TiedSum> sum;
  };

  std::shared_ptr<State> state_;  // what stands in the graph may be there longer than the step
  std::unordered_map<const torch::autograd::Node*, Tied> tied_;  // by accumulator
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_GRADIENT_PASSAGES_H_
