#include "solvers/plan/graph_lower_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/model/index.h"
#include "solvers/plan/bound_knapsack.h"
#include "solvers/plan/graph_versions.h"

namespace stowage {
namespace {

// Calls `visit` with the owner of each storage that the backward of the vertex needs.
template <class Visit>
void ForEachNeed(const Graph& graph, int p, const Visit& visit) {
  const Vertex& v = graph.vertex(p);
  for (const GraphInput& input : v.inputs) {
    if (input.backward_needs) visit(graph.storage(static_cast<int>(input.vertex)));
  }
  if (v.backward_needs_output) visit(graph.storage(p));
}

// Positions along a longest path, from its source.
std::vector<int> LongestPath(const Graph& graph) {
  std::vector<int> before, depth;
  int end = 0;
  for (int p = 0; p < graph.size(); ++p) {
    before.push_back(-1);
    depth.push_back(0);
    for (const GraphInput& input : graph.vertex(p).inputs) {
      const int from = static_cast<int>(input.vertex);
      if (depth[Index(from)] < depth[Index(p)]) continue;
      depth[Index(p)] = depth[Index(from)] + 1;
      before[Index(p)] = from;
    }
    if (depth[Index(p)] >= depth[Index(end)]) end = p;
  }
  std::vector<int> path;
  for (int p = end; p >= 0; p = before[Index(p)]) path.push_back(p);
  std::reverse(path.begin(), path.end());
  return path;
}

class PathBound {
 public:
  PathBound(const Graph& graph, Bytes budget)
      : graph_(graph),
        budget_(budget.value()),
        whole_(Index(graph.size()), 0),
        below_(whole_.size(), false),
        held_(whole_.size(), false),
        seen_(whole_.size(), -1) {
    std::vector<bool> needed(whole_.size(), false);
    for (int p = 0; p < graph.size(); ++p) {
      whole_[Index(p)] += graph.vertex(p).extra_saved.value();
      ForEachNeed(graph, p, [&](int storage) {
        if (!needed[Index(storage)]) whole_[Index(storage)] += graph.bytes(storage).value();
        needed[Index(storage)] = true;
      });
    }
  }

  Nanos Run() {
    for (const int p : LongestPath(graph_)) {
      AddAncestors(p);
      knapsack_.Require(budget_ - std::max(ForwardNeed(p), BackwardNeed(p)));
    }
    return graph_.ideal_time() + Nanos(knapsack_.RoundedUp());
  }

 private:
  // What the backwards of p's ancestors need is held from here on, or made again.
  void AddAncestors(int p) {
    std::vector<int> open = {p};
    while (!open.empty()) {
      const int reader = open.back();
      open.pop_back();
      for (const GraphInput& input : graph_.vertex(reader).inputs) {
        const int from = static_cast<int>(input.vertex);
        if (below_[Index(from)]) continue;
        below_[Index(from)] = true;
        open.push_back(from);
        Keep(from, graph_.vertex(from).extra_saved);
        ForEachNeed(graph_, from, [this](int storage) {
          if (!held_[Index(storage)]) Keep(storage, graph_.bytes(storage));
          held_[Index(storage)] = true;
        });
      }
    }
  }

  // `bytes` that the forward of `maker` makes.
  void Keep(int maker, Bytes bytes) {
    if (bytes == Bytes(0)) return;
    const Vertex& v = graph_.vertex(maker);
    if (Recomputable(v)) {
      knapsack_.Add(bytes.value(), v.forward_time.value(), whole_[Index(maker)]);
    } else {
      knapsack_.Hold(bytes.value());
    }
  }

  // Bytes of the storage if this moment counts it neither as kept nor already.
  Bytes Beside(int storage, int moment) {
    if (held_[Index(storage)] || seen_[Index(storage)] == moment) return Bytes(0);
    seen_[Index(storage)] = moment;
    return graph_.bytes(storage);
  }

  int64_t ForwardNeed(int p) {
    const Vertex& v = graph_.vertex(p);
    const Bytes saving = v.extra_saved + v.forward_saving_overhead;
    Bytes need = v.extra_saved > Bytes(0) ? saving : std::min(saving, v.forward_overhead);
    const int moment = 2 * p;
    for (const GraphInput& input : v.inputs) {
      need += Beside(graph_.storage(static_cast<int>(input.vertex)), moment);
    }
    return (need + Beside(graph_.storage(p), moment)).value();
  }

  int64_t BackwardNeed(int p) {
    const Vertex& v = graph_.vertex(p);
    Bytes need = v.extra_saved + v.backward_overhead;
    const int moment = 2 * p + 1;
    ForEachNeed(graph_, p, [&](int storage) { need += Beside(storage, moment); });
    return (need + Gradients(p)).value();
  }

  // Of p's storage and of those of its inputs, each once.
  Bytes Gradients(int p) const {
    std::vector<int> storages = {graph_.storage(p)};
    for (const GraphInput& input : graph_.vertex(p).inputs) {
      storages.push_back(graph_.storage(static_cast<int>(input.vertex)));
    }
    std::sort(storages.begin(), storages.end());
    storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
    Bytes sum;
    for (const int storage : storages) sum += graph_.vertex(storage).output_gradient;
    return sum;
  }

  const Graph& graph_;
  const int64_t budget_;
  std::vector<int64_t> whole_;  // bytes that each op makes and some backward needs
  std::vector<bool> below_;     // is an ancestor of where the path has come
  std::vector<bool> held_;      // the storage is needed later by a backward
  std::vector<int> seen_;       // the last moment that counted the storage
  BoundKnapsack knapsack_;
};

}  // namespace

Nanos MakespanLowerBound(const Graph& graph, Bytes budget) {
  return PathBound(graph, budget).Run();
}

}  // namespace stowage
