// A described network (solvers/zoo) as a model that LibTorch trains.
#ifndef STOWAGE_CLIENT_MODELS_NETWORK_MODEL_H_
#define STOWAGE_CLIENT_MODELS_NETWORK_MODEL_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <vector>

#include "client/models/network_op.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "solvers/zoo/network.h"

namespace stowage {

using OpFunction = std::function<at::Tensor(const NetworkOp& op, const OpState& state,
                                            std::vector<at::Tensor> inputs)>;

struct NetworkModelOptions {
  // The linear layer over the vocabulary shares its weight with the embedding, where there are both
  // and their shapes agree; as it does in any case where the network says so.
  bool tied_embedding = false;
  // That parameters, buffers and masks are on; what a step reads must be, too.
  c10::Device device = c10::kCPU;
  // How an op is run.
  OpFunction run_op = RunOp;
};

// Stage by stage as described; tensors inside a stage go after their last reader. The last stage, the
// loss, is cross-entropy. Draws the parameters from LibTorch's default generator and throws what
// LibTorch throws.
ChainModel ChainModelOf(const Network& network, const NetworkModelOptions& options = {});

// Op by op: node v is op v, node 0 the input. The loss is two nodes, of which the last reads the
// target.
GraphModel GraphModelOf(const Network& network, const NetworkModelOptions& options = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_NETWORK_MODEL_H_
