#include "tests/solvers/graph/small_graphs.h"

#include <cstdlib>
#include <string>

namespace stowage::testing {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

}  // namespace

void ForEachDag(int vertices, const std::function<void(const EdgeList&)>& visit) {
  EdgeList all;
  for (int v = 1; v < vertices; ++v) {
    for (int u = 0; u < v; ++u) all.push_back({u, v});
  }
  const uint32_t ends = (uint32_t{1} << vertices) - 1;
  const uint32_t readers = ends >> 1;  // all but the last vertex are read
  const uint32_t inputs = ends & ~1u;  // all but the first read
  EdgeList edges;
  for (uint32_t set = 0; set < uint32_t{1} << all.size(); ++set) {
    uint32_t read = 0, reading = 0;
    edges.clear();
    for (size_t e = 0; e < all.size(); ++e) {
      if ((set >> e & 1) == 0) continue;
      edges.push_back(all[e]);
      read |= uint32_t{1} << all[e].first;
      reading |= uint32_t{1} << all[e].second;
    }
    if (read == readers && reading == inputs) visit(edges);
  }
}

EdgeList RandomDag(int vertices, double chance, std::mt19937_64* random) {
  std::bernoulli_distribution present(chance);
  EdgeList edges;
  std::vector<bool> read(Index(vertices), false), reads(Index(vertices), false);
  const auto add = [&](int u, int v) {
    edges.push_back({u, v});
    read[Index(u)] = reads[Index(v)] = true;
  };
  for (int v = 1; v < vertices; ++v) {
    for (int u = 0; u < v; ++u) {
      if (present(*random)) add(u, v);
    }
  }
  for (int v = 1; v < vertices; ++v) {
    if (!reads[Index(v)]) add(std::uniform_int_distribution<int>(0, v - 1)(*random), v);
  }
  for (int v = 0; v + 1 < vertices; ++v) {
    if (!read[Index(v)]) add(v, std::uniform_int_distribution<int>(v + 1, vertices - 1)(*random));
  }
  return edges;
}

CheckpointGraphSpec SpecOf(int vertices, const EdgeList& edges, const std::vector<int64_t>& bytes) {
  CheckpointGraphSpec spec;
  for (int v = 0; v < vertices; ++v) spec.bytes.push_back(Bytes(bytes[Index(v)]));
  spec.edges = edges;
  return spec;
}

CheckpointGraph GraphOf(CheckpointGraphSpec spec) {
  absl::StatusOr<CheckpointGraph> graph = CheckpointGraph::Create(std::move(spec));
  if (!graph.ok()) std::abort();
  return *std::move(graph);
}

std::vector<int64_t> RandomBytes(int vertices, int64_t low, int64_t high, std::mt19937_64* random) {
  std::uniform_int_distribution<int64_t> size(low, high);
  std::vector<int64_t> bytes;
  for (int v = 0; v < vertices; ++v) bytes.push_back(size(*random));
  return bytes;
}

}  // namespace stowage::testing
