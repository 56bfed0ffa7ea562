// The graph that a search for split components takes apart: edges get lost to components, virtual
// ones come instead. Internal to split_components.h; vertices are numbers of the palm tree.
#ifndef STOWAGE_SOLVERS_GRAPH_SPLIT_GRAPH_H_
#define STOWAGE_SOLVERS_GRAPH_SPLIT_GRAPH_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "solvers/graph/linked_lists.h"
#include "solvers/graph/palm_tree.h"
#include "solvers/model/index.h"
#include "solvers/solver.h"

namespace stowage {

class SplitGraph {
 public:
  static constexpr int kNone = LinkedLists::kNone;

  explicit SplitGraph(size_t numbers) : degree_(numbers, 0), out_(numbers), high_(numbers) {}

  // Adds the arcs. CANCELLED or DEADLINE_EXCEEDED by `poll`.
  absl::Status Fill(const PalmTree& tree, StopPoll* poll);

  size_t edge_count() const { return from_.size(); }
  int from(int edge) const { return from_[Index(edge)]; }
  int to(int edge) const { return to_[Index(edge)]; }
  bool Joins(int edge, int a, int b) const {
    return (from(edge) == a && to(edge) == b) || (from(edge) == b && to(edge) == a);
  }
  int NewEdge(int from, int to);

  int degree(int v) const { return degree_[Index(v)]; }
  void CountDegree(int edge, int change) {
    degree_[Index(from(edge))] += change;
    degree_[Index(to(edge))] += change;
  }

  // The arcs out of a vertex: items of a list.
  int first_out(int v) const { return out_.front(v); }
  int next_out(int item) const { return out_.after(item); }
  int out_edge(int item) const { return out_.value(item); }
  int item_of(int edge) const { return item_of_[Index(edge)]; }
  void PlaceArc(int item, int edge) { out_.set_value(item_of_[Index(edge)] = item, edge); }
  void EraseItem(int item) { out_.Erase(item); }
  void Unlink(int edge) { out_.Erase(item_of(edge)); }

  // The first vertex whose frond ends at v, among those left; 0 if none is.
  int High(int v) const {
    const int item = high_.front(v);
    return item == kNone ? 0 : high_.value(item);
  }
  void DropHigh(int edge) {
    int& item = high_of_[Index(edge)];
    if (item != kNone) high_.Erase(item);
    item = kNone;
  }
  // `edge` stands where `other` stood.
  void CopyHigh(int other, int edge) { high_of_[Index(edge)] = high_of_[Index(other)]; }
  // `edge`, from v to `low`, is the first frond to `low`, unless it stands somewhere.
  void AddHigh(int edge, int low, int v) {
    if (high_of_[Index(edge)] == kNone) high_of_[Index(edge)] = high_.Prepend(low, v);
  }

 private:
  std::vector<int> from_, to_;
  std::vector<int> degree_;
  LinkedLists out_;           // the arcs out of a vertex
  std::vector<int> item_of_;  // of an edge, in out_
  LinkedLists high_;          // where the fronds to a vertex come from
  std::vector<int> high_of_;  // of an edge, in high_
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_SPLIT_GRAPH_H_
