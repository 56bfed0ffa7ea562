// All that a training step leaves behind, to hold one way of training against another bit for bit.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_TRAINING_OUTCOME_H_
#define STOWAGE_TESTS_CLIENT_TORCH_TRAINING_OUTCOME_H_

#include <ATen/core/Tensor.h>

#include "client/torch/model/chain_model.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/model_tensors.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/chain.h"
#include "solvers/model/digest.h"

namespace stowage {

struct Outcome {
  // As things are now.
  static Outcome Of(const ModelTensors& model, double loss, c10::Device device = c10::kCPU);

  double loss;
  Digest gradients;
  Digest buffers;
  Digest parameters;
  RandomState random;

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return a.loss == b.loss && a.gradients == b.gradients && a.buffers == b.buffers &&
           a.parameters == b.parameters && a.random == b.random;
  }
};

void ExpectEqual(const Outcome& plain, const Outcome& planned);

// No parameter that is trained is without a gradient or has one of zeros.
void ExpectGradients(const ModelTensors& model);

// Takes a model back to where it was at construction: random state and buffers; gradients to zero.
class Rewinder {
 public:
  explicit Rewinder(const ModelTensors& model, c10::Device device = c10::kCPU);
  void Rewind() const;

 private:
  const ModelTensors& model_;
  BufferState buffers_;
  RandomState random_;
};

// The bytes of the network on these tensors, measured; times that are made up, the same each time.
// `device` as of ProfileOptions.
Chain ChainWithTimes(const ChainModel& model, const at::Tensor& input, const at::Tensor& target,
                     ExecutionDevice* device = nullptr);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_TRAINING_OUTCOME_H_
