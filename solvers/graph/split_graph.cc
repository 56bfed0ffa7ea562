#include "solvers/graph/split_graph.h"

#include "solvers/graph/polled_loop.h"

namespace stowage {

absl::Status SplitGraph::Fill(const PalmTree& tree, StopPoll* poll) {
  const auto add = [&](size_t e) {
    NewEdge(tree.arcs[e].from, tree.arcs[e].to);
    CountDegree(static_cast<int>(e), 1);
  };
  absl::Status status = PolledLoop(tree.arcs.size(), kVisitSteps, add, poll);
  const auto leave = [&](size_t k) {
    const int e = tree.order[k];
    item_of_[Index(e)] = out_.Append(from(e), e);
  };
  if (status.ok()) status = PolledLoop(tree.order.size(), kVisitSteps, leave, poll);
  const auto reach = [&](size_t k) {
    const int e = tree.fronds[k];
    high_of_[Index(e)] = high_.Append(to(e), from(e));
  };
  if (status.ok()) status = PolledLoop(tree.fronds.size(), kVisitSteps, reach, poll);
  return status;
}

int SplitGraph::NewEdge(int from, int to) {
  from_.push_back(from);
  to_.push_back(to);
  item_of_.push_back(kNone);
  high_of_.push_back(kNone);
  return static_cast<int>(from_.size()) - 1;
}

}  // namespace stowage
