// One pass over the nodes of a graph that runs each with and without a graph of its own and measures
// time and memory.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_PROFILE_PASS_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_PROFILE_PASS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/profile/cost_meter.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"

namespace stowage {

// The fields are those of Vertex (solvers/model/graph.h), with the times of both forwards.
struct NodeSample {
  Nanos forward_time;
  Nanos forward_saving_time;
  Nanos backward_time;
  bool stops = false;  // a recompute right before the backward ends at its last saved tensor:
  Nanos stopped_time;
  Bytes stopped_overhead;
  Bytes output;
  Bytes output_gradient;
  Bytes extra_saved;
  Bytes forward_saving_overhead;
  Bytes forward_overhead;
  Bytes backward_overhead;
  std::vector<bool> needs_inputs;  // by input: the backward reads it again
  bool needs_output = false;
  AliasKind alias = AliasKind::kNone;
  bool random = false;
  bool stateful = false;
};

// Of several outputs of a node the bytes are those of all, the flags those of any. Holds all activations and,
// backward, all gradients that a step holds, but what one node saves at a time. Buffers and random state are left as
// they were, gradients of parameters are added to. `node_done`, if given, is called twice per node. `watch` and
// errors: as RunProfilePass.
absl::StatusOr<std::vector<NodeSample>> RunGraphProfilePass(const GraphModel& model,
                                                            const std::vector<at::Tensor>& inputs,
                                                            const Tensors& targets,
                                                            CostMeter* costs, bool watch,
                                                            const std::function<void()>& node_done);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_PROFILE_PASS_H_
