#include "tests/solvers/random_series_parallel.h"

#include <cstddef>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace stowage::testing {
namespace {

using Edges = std::vector<std::pair<int, int>>;

size_t Index(int i) { return static_cast<size_t>(i); }

// Vertices 0 and 1 are source and target.
class Grower {
 public:
  explicit Grower(uint64_t seed) : random_(seed) {}

  void Grow(int vertices, double rigid) {
    while (vertices_ < vertices) {
      const size_t edge = std::uniform_int_distribution<size_t>(0, edges.size() - 1)(random_);
      const bool is_rigid = std::bernoulli_distribution(rigid)(random_);
      const bool coin = std::bernoulli_distribution(0.5)(random_);
      const auto [u, v] = edges[edge];
      const int w = vertices_++;
      if (!is_rigid) {
        edges.insert(edges.end(), {{u, w}, {w, v}});
        if (coin) Remove(edge);
        continue;
      }
      const int x = vertices_++;
      if (coin) {
        edges.insert(edges.end(), {{u, w}, {u, x}, {w, x}, {w, v}, {x, v}});
      } else {
        const int y = vertices_++;
        const int z = vertices_++;
        edges.insert(edges.end(), {{u, w}, {u, x}, {w, y}, {w, z}, {x, y}, {x, z}, {y, v}, {z, v}});
      }
      Remove(edge);
    }
  }

  int vertices() const { return vertices_; }
  Edges edges = {{0, 1}};

 private:
  void Remove(size_t edge) {
    edges[edge] = edges.back();
    edges.pop_back();
  }

  std::mt19937_64 random_;
  int vertices_ = 2;
};

// Numbers in topological order, by vertex.
std::vector<int> Sorted(int vertices, const Edges& edges) {
  std::vector<std::vector<int>> readers(Index(vertices));
  std::vector<int> waits(Index(vertices), 0), number(Index(vertices), 0);
  for (const auto& [u, v] : edges) {
    readers[Index(u)].push_back(v);
    ++waits[Index(v)];
  }
  std::vector<int> ready = {0};
  for (int next = 0; !ready.empty(); ++next) {
    const int v = ready.back();
    ready.pop_back();
    number[Index(v)] = next;
    for (const int w : readers[Index(v)]) {
      if (--waits[Index(w)] == 0) ready.push_back(w);
    }
  }
  return number;
}

}  // namespace

CheckpointGraph RandomSeriesParallel(int vertices, double rigid, uint64_t seed) {
  Grower grower(seed);
  grower.Grow(vertices, rigid);
  const std::vector<int> number = Sorted(grower.vertices(), grower.edges);
  CheckpointGraphSpec spec;
  for (const auto& [u, v] : grower.edges)
    spec.edges.push_back({number[Index(u)], number[Index(v)]});
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int64_t> size(1, 1000000);
  for (int v = 0; v < grower.vertices(); ++v) spec.bytes.push_back(Bytes(size(random)));
  absl::StatusOr<CheckpointGraph> graph = CheckpointGraph::Create(std::move(spec));
  if (!graph.ok()) std::abort();
  return *std::move(graph);
}

}  // namespace stowage::testing
