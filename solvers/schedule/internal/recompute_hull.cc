#include "solvers/schedule/internal/recompute_hull.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/numeric/int128.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

using absl::int128;

// More than any flow, which is at most what it costs to hold all, below 2^124; and small enough that a flow can be added.
constexpr int128 kUncut = int128(1) << 125;

// Dinic's algorithm.
class FlowNetwork {
 public:
  explicit FlowNetwork(int nodes) : first_(Index(nodes), -1) {}

  void AddArc(int from, int to, int128 capacity) {
    arcs_.push_back({to, std::exchange(first_[Index(from)], Size()), capacity});
    arcs_.push_back({from, std::exchange(first_[Index(to)], Size()), 0});
  }

  // Afterwards OnSourceSide tells the smallest minimum cut.
  int128 Maximize(int source, int sink) {
    int128 flow = 0;
    while (Layer(source, sink)) {
      next_ = first_;
      while (const int128 more = Push(source, sink, kUncut)) flow += more;
    }
    return flow;
  }

  bool OnSourceSide(int node) const { return depth_[Index(node)] >= 0; }

 private:
  struct Arc {
    int to;
    int next;  // of the same node
    int128 residual;
  };

  int Size() const { return static_cast<int>(arcs_.size()); }

  bool Layer(int source, int sink) {
    depth_.assign(first_.size(), -1);
    depth_[Index(source)] = 0;
    queue_ = {source};
    for (size_t i = 0; i < queue_.size(); ++i) {
      const int node = queue_[i];
      for (int a = first_[Index(node)]; a >= 0; a = arcs_[Index(a)].next) {
        const Arc& arc = arcs_[Index(a)];
        if (arc.residual == 0 || depth_[Index(arc.to)] >= 0) continue;
        depth_[Index(arc.to)] = depth_[Index(node)] + 1;
        queue_.push_back(arc.to);
      }
    }
    return depth_[Index(sink)] >= 0;
  }

  // Along one path; no deeper than there are nodes.
  int128 Push(int node, int sink, int128 limit) {
    if (node == sink) return limit;
    for (int& a = next_[Index(node)]; a >= 0; a = arcs_[Index(a)].next) {
      const Arc& arc = arcs_[Index(a)];
      if (arc.residual == 0 || depth_[Index(arc.to)] != depth_[Index(node)] + 1) continue;
      const int128 pushed = Push(arc.to, sink, std::min(limit, arc.residual));
      if (pushed == 0) continue;
      arcs_[Index(a)].residual -= pushed;
      arcs_[Index(a ^ 1)].residual += pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<int> first_, next_, depth_, queue_;
  std::vector<Arc> arcs_;
};

// Of whole cells: some run again, the rest is held.
struct Choice {
  int64_t bytes = 0;
  int64_t time = 0;
};

class HullSearch {
 public:
  explicit HullSearch(const std::vector<RecomputeCell>& cells) : cells_(cells) {}

  RecomputeHull Run() {
    int64_t all_time = 0;
    Choice all_held;
    for (const RecomputeCell& cell : cells_) {
      if (cell.output_needed) all_held.bytes += cell.output;
      all_held.bytes += cell.extras;
      all_time += cell.time;
    }
    hull_.held = all_held.bytes;
    // A byte is worth more than all time: the least bytes, and the least time for these.
    const Choice least_bytes = Best(all_time + 1, 1);
    Divide(all_held, least_bytes);
    return std::move(hull_);
  }

 private:
  // Nodes of a cell: its output is needed; a repeat makes it; there is a repeat.
  static int Needed(size_t cell) { return 3 * static_cast<int>(cell) + 2; }
  static int MakesOutput(size_t cell) { return Needed(cell) + 1; }
  static int Repeats(size_t cell) { return Needed(cell) + 2; }
  static constexpr int kSource = 0, kSink = 1;

  // The least of time * `per_time` + bytes * `per_byte`.
  Choice Best(int64_t per_byte, int64_t per_time) const {
    FlowNetwork flow(3 * static_cast<int>(cells_.size()) + 2);
    for (size_t i = 0; i < cells_.size(); ++i) {
      const RecomputeCell& cell = cells_[i];
      if (cell.output_needed) flow.AddArc(kSource, Needed(i), kUncut);
      flow.AddArc(Needed(i), MakesOutput(i), int128(cell.output) * per_byte);
      flow.AddArc(MakesOutput(i), Repeats(i), kUncut);
      flow.AddArc(MakesOutput(i), kSink, int128(cell.time - cell.stopped_time) * per_time);
      flow.AddArc(Repeats(i), kSink,
                  cell.repeatable ? int128(cell.stopped_time) * per_time : kUncut);
      flow.AddArc(kSource, Repeats(i), int128(cell.extras) * per_byte);
      for (const int input : cell.inputs) {
        flow.AddArc(Repeats(i), Needed(static_cast<size_t>(input)), kUncut);
      }
    }
    flow.Maximize(kSource, kSink);
    Choice choice;
    for (size_t i = 0; i < cells_.size(); ++i) {
      const RecomputeCell& cell = cells_[i];
      if (flow.OnSourceSide(Needed(i)) && !flow.OnSourceSide(MakesOutput(i))) {
        choice.bytes += cell.output;
      }
      if (flow.OnSourceSide(MakesOutput(i))) choice.time += cell.time - cell.stopped_time;
      if (flow.OnSourceSide(Repeats(i))) {
        choice.time += cell.stopped_time;
      } else {
        choice.bytes += cell.extras;
      }
    }
    return choice;
  }

  // The steps between two corners, the one of more bytes first.
  void Divide(const Choice& from, const Choice& to) {
    const int64_t bytes = from.bytes - to.bytes, time = to.time - from.time;
    if (bytes <= 0) return;
    const auto cost = [bytes, time](const Choice& choice) {
      return int128(choice.bytes) * time + int128(choice.time) * bytes;
    };
    const Choice between = Best(time, bytes);
    if (cost(between) == cost(from)) {
      hull_.steps.push_back({bytes, time});
      return;
    }
    Divide(from, between);
    Divide(between, to);
  }

  const std::vector<RecomputeCell>& cells_;
  RecomputeHull hull_;
};

}  // namespace

RecomputeHull HullOf(const std::vector<RecomputeCell>& cells) { return HullSearch(cells).Run(); }

}  // namespace stowage
