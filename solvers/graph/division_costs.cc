#include "solvers/graph/division_costs.h"

#include <algorithm>
#include <cstddef>

#include "solvers/graph/polled_loop.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Bytes that the op at a node's end reads from inside the node.
absl::StatusOr<std::vector<int64_t>> ReadFromInside(const CheckpointGraph& graph,
                                                    const DivisionTree& tree, StopPoll* poll) {
  std::vector<int64_t> read(Index(tree.size()), 0);
  std::vector<bool> direct(Index(tree.size()), false);  // the end reads the start
  for (int n = tree.size() - 1; n > 0; --n) {
    absl::Status status = poll->Spend(1 << 3);
    if (!status.ok()) return status;
    const DivisionNode& node = tree.node(n);
    const DivisionNode& parent = tree.node(node.parent);
    if (node.kind == DivisionKind::kEdge) direct[Index(n)] = true;
    if (node.end != parent.end) continue;
    read[Index(node.parent)] += read[Index(n)];
    if (!direct[Index(n)]) continue;
    if (node.start == parent.start) {
      direct[Index(node.parent)] = true;
    } else {
      read[Index(node.parent)] += graph.bytes(node.start).value();
    }
  }
  return read;
}

// Adds what the ends' ops hold of other segments once the parent of a node is divided.
absl::Status ChargeNeededInputs(const CheckpointGraph& graph, const DivisionTree& tree,
                                std::vector<int64_t>* whole, StopPoll* poll) {
  const absl::StatusOr<std::vector<int64_t>> inside = ReadFromInside(graph, tree, poll);
  if (!inside.ok()) return inside.status();
  const std::vector<int64_t>& read = *inside;
  const int64_t most = graph.total().value();
  std::vector<int64_t> beside(Index(tree.size()), 0);
  std::vector<int64_t> read_at(Index(graph.size()), 0);  // by the end of the children at hand
  for (int n = 0; n < tree.size(); ++n) {
    const DivisionNode& node = tree.node(n);
    const auto for_each_child = [&node, poll](const auto& visit) {
      return PolledLoop(
          Index(node.child_count), 1 << 3,
          [&](size_t k) { visit(node.first_child + static_cast<int>(k)); }, poll);
    };
    absl::Status status =
        for_each_child([&](int c) { read_at[Index(tree.node(c).end)] += read[Index(c)]; });
    const auto charge = [&](int c) {
      const int end = tree.node(c).end;
      if (!graph.needs_inputs(end)) return;
      if (end == node.end) beside[Index(c)] = beside[Index(n)];
      beside[Index(c)] += read_at[Index(end)] - read[Index(c)];
    };
    if (status.ok()) status = for_each_child(charge);
    const auto forget = [&](int c) { read_at[Index(tree.node(c).end)] = 0; };
    if (status.ok()) status = for_each_child(forget);
    (*whole)[Index(n)] = std::min(most, (*whole)[Index(n)] + beside[Index(n)]);
    if (status.ok()) status = poll->Spend(1 << 3);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DivisionCosts> CostsOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                      NeededInputs needed, StopPoll* poll) {
  DivisionCosts costs;
  const auto nodes = Index(tree.size());
  absl::Status status = PolledLoop(
      nodes, 1 << 3,
      [&](size_t n) { costs.whole.push_back(tree.node(static_cast<int>(n)).bytes.value()); }, poll);
  if (status.ok() && needed == NeededInputs::kAllCharged) {
    status = ChargeNeededInputs(graph, tree, &costs.whole, poll);
  }
  costs.must_open.assign(nodes, false);
  const auto open = [&](size_t k) {
    const size_t n = nodes - 1 - k;
    for (const int v : tree.connecting(static_cast<int>(n))) {
      if (graph.must_keep(v)) costs.must_open[n] = true;
    }
    const int parent = tree.node(static_cast<int>(n)).parent;
    if (parent >= 0 && costs.must_open[n]) costs.must_open[Index(parent)] = true;
  };
  if (status.ok()) status = PolledLoop(nodes, 1 << 3, open, poll);
  if (!status.ok()) return status;
  return costs;
}

}  // namespace stowage
