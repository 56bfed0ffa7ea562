// Parameters and buffers without a model.
#ifndef STOWAGE_TESTS_CLIENT_AGENT_SOME_TENSORS_H_
#define STOWAGE_TESTS_CLIENT_AGENT_SOME_TENSORS_H_

#include <torch/torch.h>

#include "client/torch/model/model_tensors.h"

namespace stowage {

struct SomeTensors : ModelTensors {
  // 400 bytes that train, 100 that do not, 40 of buffers.
  SomeTensors() {
    trained = torch::zeros({100}).requires_grad_();
    AddTensors({trained, torch::zeros({25})}, {torch::zeros({10})});
    trained.mutable_grad().reset();
  }
  at::Tensor trained;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_SOME_TENSORS_H_
