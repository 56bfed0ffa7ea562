// Measures what every node of a model costs: the graph profile that a plan is made from.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_PROFILER_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_PROFILER_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/model/problem.h"

namespace stowage {

// A graph profile: vertex v is node v. Bytes are exact for these inputs, overheads the largest seen,
// times medians over whole passes; which inputs a backward reads again, and what lives in the memory
// of what, is found by looking. Backward overheads hold for backwards in reverse program order.
// Errors, state and restrictions: as ProfileChain; also INVALID_ARGUMENT if the model has no scalar
// to train by.
absl::StatusOr<Profile> ProfileGraph(const GraphModel& model, const std::vector<at::Tensor>& inputs,
                                     const Tensors& targets, const ProfileOptions& options = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_PROFILER_H_
