#include "solvers/graph/budget/proposals.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <utility>

#include "solvers/model/index.h"

namespace stowage {
namespace {

class OutputByOutput {
 public:
  explicit OutputByOutput(const OpGraph& graph)
      : graph_(graph), ran_(Index(graph.size()), false), waits_for_(Index(graph.size()), 0) {
    for (int v = 0; v < graph.size(); ++v) {
      waits_for_[Index(v)] = static_cast<int>(graph.readers(v).size());
      ordered_before_.push_back(last_ordered_);
      if (graph.costs(v).ordered) last_ordered_ = v;
    }
  }

  ComputeOrder Run(bool last_first) {
    for (int i = 0; i < graph_.size(); ++i) {
      const int v = last_first ? graph_.size() - 1 - i : i;
      if (!graph_.readers(v).empty()) continue;
      RunForward(v);
      RunBackward(v);
    }
    return std::move(order_);
  }

 private:
  void RunForward(int output) {
    std::vector<int> needed;
    const auto need = [&](int u) {
      if (u < 0 || ran_[Index(u)]) return;
      ran_[Index(u)] = true;
      needed.push_back(u);
    };
    need(output);
    for (size_t i = 0; i < needed.size(); ++i) {
      const int v = needed[i];
      for (const OpGraph::Input& input : graph_.inputs(v)) need(input.vertex);
      if (graph_.costs(v).ordered) need(ordered_before_[Index(v)]);
    }
    std::sort(needed.begin(), needed.end());
    for (const int v : needed) order_.push_back({v, false});
  }

  // Of what can run, always the last vertex. A vertex that has not run forward waits: its readers'
  // backwards have not run either.
  void RunBackward(int output) {
    std::priority_queue<int> ready;
    ready.push(output);
    while (!ready.empty()) {
      const int v = ready.top();
      ready.pop();
      order_.push_back({v, true});
      for (const OpGraph::Input& input : graph_.inputs(v)) {
        if (--waits_for_[Index(input.vertex)] == 0) ready.push(input.vertex);
      }
    }
  }

  const OpGraph& graph_;
  std::vector<bool> ran_;
  std::vector<int> waits_for_;       // readers that have not run backward
  std::vector<int> ordered_before_;  // the vertex before that keeps its order; -1 if none
  int last_ordered_ = -1;
  ComputeOrder order_;
};

// Checkpoints and segments in an order in which each comes after what it reads; each with its
// vertices, rising.
std::vector<std::vector<int>> QuotientOrder(const OpGraph& graph,
                                            const std::vector<int>& segment_of) {
  std::vector<int> node_of(Index(graph.size()), -1), node_of_segment;
  std::vector<std::vector<int>> nodes;
  for (int v = 0; v < graph.size(); ++v) {
    const int segment = segment_of[Index(v)];
    if (segment >= static_cast<int>(node_of_segment.size())) {
      node_of_segment.resize(Index(segment) + 1, -1);
    }
    int node = segment < 0 ? -1 : node_of_segment[Index(segment)];
    if (node < 0) {
      node = static_cast<int>(nodes.size());
      nodes.emplace_back();
    }
    if (segment >= 0) node_of_segment[Index(segment)] = node;
    node_of[Index(v)] = node;
    nodes[Index(node)].push_back(v);
  }
  std::vector<int> waits_for(nodes.size(), 0);
  for (int v = 0; v < graph.size(); ++v) {
    for (const int reader : graph.readers(v)) {
      if (node_of[Index(v)] != node_of[Index(reader)]) ++waits_for[Index(node_of[Index(reader)])];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (waits_for[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<std::vector<int>> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    for (const int v : nodes[Index(node)]) {
      for (const int reader : graph.readers(v)) {
        const int to = node_of[Index(reader)];
        if (to != node && --waits_for[Index(to)] == 0) ready.push(to);
      }
    }
    order.push_back(std::move(nodes[Index(node)]));
  }
  return order;
}

}  // namespace

ComputeOrder OutputByOutputOrder(const OpGraph& graph, bool last_first) {
  return OutputByOutput(graph).Run(last_first);
}

ComputeOrder CheckpointOrder(const OpGraph& graph, const std::vector<int>& segment_of,
                             bool last_stays) {
  const std::vector<std::vector<int>> parts = QuotientOrder(graph, segment_of);
  std::vector<const std::vector<int>*> vertices_of;  // of each segment
  int last = -1;
  for (const std::vector<int>& part : parts) {
    const int segment = segment_of[Index(part.front())];
    if (segment < 0) continue;
    last = segment;
    if (vertices_of.size() <= Index(segment)) vertices_of.resize(Index(segment) + 1, nullptr);
    vertices_of[Index(segment)] = &part;
  }
  ComputeOrder order;
  for (int v = 0; v < graph.size(); ++v) order.push_back({v, false});
  std::vector<bool> again(vertices_of.size(), false);
  if (last_stays && last >= 0) again[Index(last)] = true;
  const auto run_again = [&](int segment) {
    if (segment < 0 || again[Index(segment)]) return;
    again[Index(segment)] = true;
    for (const int v : *vertices_of[Index(segment)]) {
      if (graph.costs(v).recomputable) order.push_back({v, false});
    }
  };
  for (size_t p = parts.size(); p-- > 0;) {
    const std::vector<int>& part = parts[p];
    run_again(segment_of[Index(part.front())]);
    for (size_t k = part.size(); k-- > 0;) {
      for (const OpGraph::Input& input : graph.inputs(part[k])) {
        if (input.backward_needs) run_again(segment_of[Index(input.vertex)]);
      }
      order.push_back({part[k], true});
    }
  }
  return order;
}

}  // namespace stowage
