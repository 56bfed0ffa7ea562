// A step that fails has added to some gradients already, and whoever exchanges them with other ranks was told so. A second
// try within the same step leaves those as they are, and adds to the others.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_ADDED_GRADIENTS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_ADDED_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "client/torch/base/autograd_node.h"
#include "client/torch/execute/accumulator_stand_ins.h"

namespace stowage {

// Made before a step, of the parameters that it may add to: told by hooks on their gradient accumulators, which it holds.
// Another backward on these parameters meanwhile counts, too. Throws what LibTorch throws; not thread-safe.
class AddedGradients {
 public:
  explicit AddedGradients(const std::vector<at::Tensor>& parameters);
  ~AddedGradients();
  AddedGradients(const AddedGradients&) = delete;
  AddedGradients& operator=(const AddedGradients&) = delete;

  // Those whose accumulator has run since. O(parameters).
  std::vector<at::Tensor> Parameters() const;

 private:
  class Hook;
  struct Watched {
    at::Tensor parameter;
    NodePtr accumulator;
    std::shared_ptr<bool> added;
    uintptr_t hook = 0;
  };

  std::vector<Watched> watched_;
};

// While it lasts, graphs that are made on these parameters leave their gradients as they are, and call no hook of their
// gradient accumulators. Nobody else may build graphs on them meanwhile. Throws what LibTorch throws.
class LeavingGradients {
 public:
  explicit LeavingGradients(const std::vector<at::Tensor>& parameters);
  LeavingGradients(const LeavingGradients&) = delete;
  LeavingGradients& operator=(const LeavingGradients&) = delete;

 private:
  AccumulatorStandIns sinks_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_ADDED_GRADIENTS_H_
