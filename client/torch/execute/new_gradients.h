// Gradients that parameters get in a step that began without them (set_to_none): autograd makes the first one that comes to
// a parameter its gradient, and nothing is added up. That memory is the parameter's, as that of all gradients is, and none
// of the activations': from where it becomes a gradient it is left out of what the step is measured to take.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_NEW_GRADIENTS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_NEW_GRADIENTS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/StorageImpl.h>
#include <torch/csrc/autograd/function.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "client/torch/base/autograd_node.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/model_tensors.h"
#include "solvers/model/units.h"

namespace stowage {

// Of one step; takes the meter's recent peaks. A gradient is then made by one thread at a time, as in every backward on
// one device. Throws what LibTorch throws; not thread-safe.
class NewGradients {
 public:
  // Of parameters that have no gradient now. Those of several parts are left out: their sums have memory from before
  // (ParameterGradients). The meter outlives the object.
  NewGradients(const ModelTensors& model, MemoryMeter* meter);
  ~NewGradients();
  NewGradients(const NewGradients&) = delete;
  NewGradients& operator=(const NewGradients&) = delete;

  // For an edge to `accumulator`: where it has to go instead, through a node that runs right before that; `number` is the
  // edge's among those of its node. Null for what is not the accumulator of such a parameter.
  NodePtr Before(const torch::autograd::Node* accumulator, uint64_t number) const;

  // Most live bytes since the meter was reset, without what has become a gradient.
  Bytes TakePeak() { return state_->TakePeak(); }

 private:
  class Passage;
  class Hook;
  struct State {
    MemoryMeter* meter;
    Bytes peak;
    Bytes taken;  // by new gradients
    std::unordered_set<const c10::StorageImpl*> gradients;

    Bytes TakePeak();
  };
  struct Watched {
    at::Tensor parameter;
    NodePtr accumulator;
    uintptr_t hook = 0;
  };

  const std::shared_ptr<State> state_;  // what stands in the graph may be there longer
  std::unordered_map<const torch::autograd::Node*, Watched> watched_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_NEW_GRADIENTS_H_
