#include "solvers/graph/splitting_vertices.h"

#include <algorithm>

namespace stowage {

std::vector<int> SplittingVertices(const CheckpointGraph& graph) {
  std::vector<int> splitting;
  int furthest = graph.source();  // that any vertex so far is read by
  for (int v = 0; v < graph.size(); ++v) {
    if (furthest <= v) splitting.push_back(v);
    if (!graph.readers(v).empty()) furthest = std::max(furthest, graph.readers(v).back());
  }
  return splitting;
}

}  // namespace stowage
