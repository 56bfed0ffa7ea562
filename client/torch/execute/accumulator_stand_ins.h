// Other nodes in place of gradient accumulators, in graphs that are made meanwhile.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_ACCUMULATOR_STAND_INS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_ACCUMULATOR_STAND_INS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "client/torch/base/autograd_node.h"

namespace stowage {

// While it lasts, graphs on these parameters end in what `make` made of each. Hooks that others have on the accumulators, as
// c10d's Reducer has, are not called by their backwards, and are there as before when it ends. Parameters that are not
// trained stay as they are. Nobody else may build graphs on them meanwhile. Throws what LibTorch and `make` throw; not
// thread-safe.
class AccumulatorStandIns {
 public:
  using Make = std::function<NodePtr(const at::Tensor& parameter)>;

  AccumulatorStandIns(const std::vector<at::Tensor>& parameters, const Make& make);
  ~AccumulatorStandIns();
  AccumulatorStandIns(const AccumulatorStandIns&) = delete;
  AccumulatorStandIns& operator=(const AccumulatorStandIns&) = delete;

 private:
  struct Replaced {
    at::Tensor parameter;
    NodePtr accumulator;  // its own
    NodePtr stand_in;
  };

  std::vector<Replaced> replaced_;
};

// Makes an accumulator that adds to the gradient, and has no hooks.
NodePtr AccumulatorWithoutHooks(const at::Tensor& parameter);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_ACCUMULATOR_STAND_INS_H_
