#include "tests/solvers/graph/random_dag.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/solvers/graph/small_graphs.h"

namespace stowage::testing {
namespace {

int Draw(int below, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(0, below - 1)(*rng);
}

}  // namespace

CheckpointGraph RandomDag(int size, const RandomDagOptions& options, std::mt19937_64* rng) {
  EdgeList edges;
  std::vector<bool> read(static_cast<size_t>(size), false);
  const auto add = [&](int from, int to) {
    edges.push_back({from, to});
    read[static_cast<size_t>(from)] = true;
  };
  std::bernoulli_distribution edge(options.density), flag(0.2);
  for (int v = 1; v < size; ++v) {
    const int first = std::max(0, v - options.longest_edge);
    bool reads = false;
    for (int u = first; u < v; ++u) {
      if (!edge(*rng)) continue;
      add(u, v);
      reads = true;
    }
    if (!reads) add(first + Draw(v - first, rng), v);
  }
  for (int v = 0; v + 1 < size; ++v) {
    if (read[static_cast<size_t>(v)]) continue;
    const int last = std::min<int64_t>(size - 1, int64_t{v} + options.longest_edge);
    add(v, v + 1 + Draw(last - v, rng));
  }
  CheckpointGraphSpec spec = SpecOf(size, edges, RandomBytes(size, 0, options.max_bytes, rng));
  for (int v = 0; v < size && options.with_flags; ++v) {
    spec.must_keep.push_back(flag(*rng));
    spec.needs_inputs.push_back(flag(*rng));
  }
  return GraphOf(std::move(spec));
}

std::string Describe(const CheckpointGraph& graph) {
  std::string bytes, edges, keep, needs;
  for (int v = 0; v < graph.size(); ++v) {
    absl::StrAppend(&bytes, v == 0 ? "" : ",", graph.bytes(v).value());
    for (const int u : graph.inputs(v)) absl::StrAppend(&edges, " ", u, "-", v);
    if (graph.must_keep(v)) absl::StrAppend(&keep, " ", v);
    if (graph.needs_inputs(v)) absl::StrAppend(&needs, " ", v);
  }
  return absl::StrCat("l=[", bytes, "] edges", edges, "; keep", keep, "; needs", needs);
}

}  // namespace stowage::testing
