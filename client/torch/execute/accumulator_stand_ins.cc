#include "client/torch/execute/accumulator_stand_ins.h"

#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace stowage {

AccumulatorStandIns::AccumulatorStandIns(const std::vector<at::Tensor>& parameters,
                                         const Make& make) {
  for (const at::Tensor& parameter : parameters) {
    if (!parameter.requires_grad()) continue;
    replaced_.push_back(
        {parameter, torch::autograd::impl::grad_accumulator(parameter), make(parameter)});
  }
  for (const Replaced& replaced : replaced_) {
    torch::autograd::impl::set_grad_accumulator(replaced.parameter, WeakNode(replaced.stand_in));
  }
}

// An accumulator lives as long as anybody holds it: here, and in the graphs of others.
AccumulatorStandIns::~AccumulatorStandIns() {
  for (const Replaced& replaced : replaced_) {
    torch::autograd::impl::set_grad_accumulator(replaced.parameter, WeakNode(replaced.accumulator));
  }
}

NodePtr AccumulatorWithoutHooks(const at::Tensor& parameter) {
  return MakeNode<torch::autograd::AccumulateGrad>(parameter);
}

}  // namespace stowage
