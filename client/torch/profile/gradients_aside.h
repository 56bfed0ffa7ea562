#ifndef STOWAGE_CLIENT_TORCH_PROFILE_GRADIENTS_ASIDE_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_GRADIENTS_ASIDE_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

#include "client/torch/execute/accumulator_stand_ins.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

// Lays the gradients of a model aside for a while, and with them the hooks of those who exchange them with other ranks:
// what is measured meanwhile is no step of theirs. Giving it new gradients is the caller's: that can run out of memory,
// and a constructor that throws would never put the old ones back.
class GradientsAside {
 public:
  explicit GradientsAside(const ModelTensors& model)
      : parameters_(model.parameters()), accumulators_(parameters_, AccumulatorWithoutHooks) {
    gradients_.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) {
      gradients_.push_back(parameter.grad());
      parameter.mutable_grad().reset();
    }
  }
  ~GradientsAside() {
    for (size_t i = 0; i < gradients_.size(); ++i) parameters_[i].mutable_grad() = gradients_[i];
  }
  GradientsAside(const GradientsAside&) = delete;
  GradientsAside& operator=(const GradientsAside&) = delete;

 private:
  std::vector<at::Tensor> parameters_;
  AccumulatorStandIns accumulators_;
  std::vector<at::Tensor> gradients_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_GRADIENTS_ASIDE_H_
