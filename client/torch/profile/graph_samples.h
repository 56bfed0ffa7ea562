// What passes over a model measured, as a graph.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_SAMPLES_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_SAMPLES_H_

#include "absl/status/statusor.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/profile/graph_profile_pass.h"
#include "client/torch/profile/profile_times.h"
#include "solvers/model/graph.h"

namespace stowage {

// As MakeChain: at least one pass, with a sample of every node; vertex v is node v.
absl::StatusOr<Graph> MakeGraph(const GraphModel& model, const Passes<NodeSample>& passes,
                                bool with_times);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_GRAPH_SAMPLES_H_
