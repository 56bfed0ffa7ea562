#include "solvers/graph/division_costs.h"

#include <algorithm>
#include <cstddef>

namespace stowage {
namespace {

size_t Index(int i) { return static_cast<size_t>(i); }

// Bytes that the op at a node's end reads from inside the node.
std::vector<int64_t> ReadFromInside(const CheckpointGraph& graph, const DivisionTree& tree) {
  std::vector<int64_t> read(Index(tree.size()), 0);
  std::vector<bool> direct(Index(tree.size()), false);  // the end reads the start
  for (int n = tree.size() - 1; n > 0; --n) {
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
  const std::vector<int64_t> read = ReadFromInside(graph, tree);
  const int64_t most = graph.total().value();
  std::vector<int64_t> beside(Index(tree.size()), 0);
  std::vector<int64_t> read_at(Index(graph.size()), 0);  // by the end of the children at hand
  for (int n = 0; n < tree.size(); ++n) {
    const DivisionNode& node = tree.node(n);
    const auto for_each_child = [&node](const auto& visit) {
      for (int c = node.first_child; c < node.first_child + node.child_count; ++c) visit(c);
    };
    for_each_child([&](int c) { read_at[Index(tree.node(c).end)] += read[Index(c)]; });
    for_each_child([&](int c) {
      const int end = tree.node(c).end;
      if (!graph.needs_inputs(end)) return;
      if (end == node.end) beside[Index(c)] = beside[Index(n)];
      beside[Index(c)] += read_at[Index(end)] - read[Index(c)];
    });
    for_each_child([&](int c) { read_at[Index(tree.node(c).end)] = 0; });
    (*whole)[Index(n)] = std::min(most, (*whole)[Index(n)] + beside[Index(n)]);
    const absl::Status status = poll->Spend(int64_t{node.child_count + 1} << 5);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DivisionCosts> CostsOf(const CheckpointGraph& graph, const DivisionTree& tree,
                                      NeededInputs needed, StopPoll* poll) {
  DivisionCosts costs;
  for (int n = 0; n < tree.size(); ++n) costs.whole.push_back(tree.node(n).bytes.value());
  absl::Status status;
  if (needed == NeededInputs::kAllCharged) {
    status = ChargeNeededInputs(graph, tree, &costs.whole, poll);
  }
  if (status.ok()) status = poll->Spend(int64_t{tree.size()} << 4);
  if (!status.ok()) return status;

  costs.must_open.assign(costs.whole.size(), false);
  for (int n = tree.size() - 1; n >= 0; --n) {
    const DivisionNode& node = tree.node(n);
    for (const int v : tree.connecting(n)) {
      if (graph.must_keep(v)) costs.must_open[Index(n)] = true;
    }
    if (node.parent >= 0 && costs.must_open[Index(n)]) costs.must_open[Index(node.parent)] = true;
  }
  return costs;
}

}  // namespace stowage
