#include "tests/solvers/graph/random_dag.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stowage::testing {
namespace {

int Draw(int below, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(0, below - 1)(*rng);
}

std::vector<Bytes> DrawBytes(int size, int max_bytes, std::mt19937_64* rng) {
  std::vector<Bytes> bytes;
  for (int v = 0; v < size; ++v) bytes.emplace_back(Draw(max_bytes + 1, rng));
  return bytes;
}

}  // namespace

CheckpointGraph RandomDag(int size, const RandomDagOptions& options, std::mt19937_64* rng) {
  CheckpointGraphSpec spec;
  spec.bytes = DrawBytes(size, options.max_bytes, rng);
  std::vector<bool> read(static_cast<size_t>(size), false);
  const auto add = [&](int from, int to) {
    spec.edges.push_back({from, to});
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
  for (int v = 0; v < size && options.with_flags; ++v) {
    spec.must_keep.push_back(flag(*rng));
    spec.needs_inputs.push_back(flag(*rng));
  }
  return *CheckpointGraph::Create(std::move(spec));
}

void ForEachDag(int size, std::mt19937_64* rng,
                const std::function<void(const CheckpointGraph&)>& use) {
  std::vector<std::pair<int, int>> pairs;
  for (int to = 1; to < size; ++to) {
    for (int from = 0; from < to; ++from) pairs.push_back({from, to});
  }
  for (uint32_t mask = 0; mask < uint32_t{1} << pairs.size(); ++mask) {
    CheckpointGraphSpec spec;
    for (size_t e = 0; e < pairs.size(); ++e) {
      if ((mask >> e & 1) != 0) spec.edges.push_back(pairs[e]);
    }
    spec.bytes = DrawBytes(size, 9, rng);
    const auto graph = CheckpointGraph::Create(std::move(spec));
    if (graph.ok()) use(*graph);  // the others have several sources or targets
  }
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
