// Graphs that LibTorch 1.13 profiles, as from 2.0 on.
#ifndef STOWAGE_TESTS_CLIENT_MODELS_MEANS_OF_TODAY_H_
#define STOWAGE_TESTS_CLIENT_MODELS_MEANS_OF_TODAY_H_

#include <cstddef>
#include <utility>

#include "client/torch/base/torch_version.h"
#include "solvers/model/graph.h"
#include "solvers/zoo/network.h"

namespace stowage {

// Of a network: 1.13 keeps the input of a mean for the number of its elements.
inline Graph WithMeansOfToday(const Graph& graph, const Network& network) {
#if STOWAGE_TORCH_AT_LEAST(2, 0)
  static_cast<void>(network);
  return graph;
#else
  GraphSpec spec{graph.name(), {}};
  for (int v = 0; v < graph.size(); ++v) {
    Vertex vertex = graph.vertex(v);
    const OpKind kind = network.ops[static_cast<size_t>(v)].kind;
    if (kind == OpKind::kGlobalAvgPool) vertex.inputs[0].backward_needs = false;
    spec.vertices.push_back(std::move(vertex));
  }
  return *Graph::Create(std::move(spec));
#endif
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_MODELS_MEANS_OF_TODAY_H_
