#include "solvers/plan/graph_versions.h"

namespace stowage {

GraphVersions::GraphVersions(const Graph& graph) {
  std::vector<int> current;  // by owner of a storage
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    first_read_.push_back(read_.size());
    for (const GraphInput& input : v.inputs) {
      const int storage = graph.storage(static_cast<int>(input.vertex));
      read_.push_back(current[static_cast<size_t>(storage)]);
    }
    current.push_back(p);
    int& version = current[static_cast<size_t>(graph.storage(p))];
    if (v.alias == AliasKind::kInPlace) version = p;
    made_.push_back(version);
  }
}

std::vector<bool> SeedStorages(const Graph& graph) {
  std::vector<bool> seeds;
  for (int p = 0; p < graph.size(); ++p) {
    seeds.push_back(graph.storage(p) == p);
    for (const GraphInput& input : graph.vertex(p).inputs) {
      const int storage = graph.storage(static_cast<int>(input.vertex));
      if (storage != graph.storage(p)) seeds[static_cast<size_t>(storage)] = false;
    }
  }
  return seeds;
}

}  // namespace stowage
