// One op of a described network (solvers/zoo) as the LibTorch call that it stands for.
//
// Functions throw what LibTorch throws.
#ifndef STOWAGE_CLIENT_MODELS_NETWORK_OP_H_
#define STOWAGE_CLIENT_MODELS_NETWORK_OP_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/zoo/network.h"

namespace stowage {

// What an op has beside the tensors that it reads.
struct OpState {
  // Trained; undefined where there is none.
  at::Tensor weight;
  at::Tensor bias;
  // Running mean and variance.
  std::vector<at::Tensor> statistics;
  // Of attention scores: 0 where a position may look, -infinity where it would look ahead.
  at::Tensor mask;
  // Of a transpose: into how many heads it splits, negative for how many it joins.
  int64_t heads = 0;
};

// Parameters as networks of this kind start: convolutions normal by He et al. 2015 (fan out),
// linear layers uniform as LibTorch's own, embeddings normal with a deviation of 0.02, norms 1 and 0.
// Draws from LibTorch's default generator of the CPU, whatever the device: equal seeds, equal values.
OpState MakeOpState(const Network& network, size_t op, c10::Device device = c10::kCPU);

// A loss reads the target after its input. The batch, and the length of a sequence, need not be those of the description. An op in place
// writes over the first input.
at::Tensor RunOp(const NetworkOp& op, const OpState& state, std::vector<at::Tensor> inputs);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_NETWORK_OP_H_
