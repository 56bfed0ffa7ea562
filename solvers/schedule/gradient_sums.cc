#include "solvers/schedule/gradient_sums.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "solvers/model/index.h"

namespace stowage {
namespace {

bool IsView(const Graph& graph, int v) { return graph.vertex(v).alias == AliasKind::kView; }

// By vertex, each once, rising; those of a view are those of what it is a view of.
std::vector<std::vector<int>> ReadersThroughViews(const Graph& graph) {
  std::vector<std::vector<int>> readers(Index(graph.size()));
  std::vector<int> seen_in(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    const Vertex& vertex = graph.vertex(v);
    const bool view = IsView(graph, v);
    seen_in[Index(v)] = view ? seen_in[static_cast<size_t>(vertex.inputs[0].vertex)] : v;
    for (size_t i = view ? 1 : 0; i < vertex.inputs.size(); ++i) {
      const auto input = static_cast<size_t>(vertex.inputs[i].vertex);
      std::vector<int>& of_input = readers[Index(seen_in[input])];
      if (of_input.empty() || of_input.back() != v) of_input.push_back(v);
    }
  }
  return readers;
}

// By vertex, each once, rising, views among them; none for a vertex that no view reads.
std::vector<std::vector<int>> ReadersBesideViews(const Graph& graph) {
  std::vector<std::vector<int>> readers(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    for (const auto& input : graph.vertex(v).inputs) {
      std::vector<int>& of_input = readers[static_cast<size_t>(input.vertex)];
      if (of_input.empty() || of_input.back() != v) of_input.push_back(v);
    }
  }
  for (std::vector<int>& list : readers) {
    const auto view = [&](int v) { return IsView(graph, v); };
    if (std::none_of(list.begin(), list.end(), view)) list.clear();
  }
  return readers;
}

// Backwards in their order, but of views as early as the sums ask for.
class ViewDrawer {
 public:
  ViewDrawer(const Graph& graph, const GradientSums& sums, size_t instructions)
      : graph_(graph), sums_(sums), ran_(Index(graph.size()), false), unread_(ran_.size(), 0) {
    drawn_.reserve(instructions);
    for (int v = 0; v < graph.size(); ++v) CountReads(v, 1);
  }

  void Add(const Instruction& i) {
    if (i.op != Op::kBackward) {
      drawn_.push_back(i);
    } else if (!ran_[Index(i.stage - 1)]) {
      AddBackward(i);
    }
  }

  Schedule Take() { return std::move(drawn_); }

 private:
  struct Begun {
    Instruction backward;
    size_t looked_at = 0;  // of what comes before it
  };

  // With the views before it, and those before them: as many as there are vertices.
  void AddBackward(const Instruction& first) {
    begun_.push_back({first});
    while (!begun_.empty()) {
      const Instruction i = begun_.back().backward;
      const int v = i.stage - 1;
      const auto& all_before = sums_.Before(v);
      if (begun_.back().looked_at < all_before.size()) {
        const int before = all_before[begun_.back().looked_at++];
        const bool ready = !ran_[Index(before)] && unread_[Index(before)] == 0;
        if (!ready || !IsView(graph_, before)) continue;
        Instruction view = i;
        view.stage = before + 1;
        begun_.push_back({view});
        continue;
      }
      ran_[Index(v)] = true;
      CountReads(v, -1);
      drawn_.push_back(i);
      begun_.pop_back();
    }
  }

  void CountReads(int v, int by) {
    for (const GraphInput& input : graph_.vertex(v).inputs) {
      unread_[static_cast<size_t>(input.vertex)] += by;
    }
  }

  const Graph& graph_;
  const GradientSums& sums_;
  std::vector<bool> ran_;     // backward, by vertex
  std::vector<int> unread_;   // reads of a vertex whose backward has not run
  std::vector<Begun> begun_;  // each before the one that it was begun for
  Schedule drawn_;
};

std::vector<int> EachAlone(int vertices) {
  std::vector<int> group_of(Index(vertices));
  std::iota(group_of.begin(), group_of.end(), 0);
  return group_of;
}

std::vector<int> GroupOf(int vertices, const std::vector<std::vector<int>>& groups) {
  std::vector<int> group_of(Index(vertices), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const int v : groups[g]) group_of[Index(v)] = static_cast<int>(g);
  }
  return group_of;
}

}  // namespace

GradientSums::Lists::Lists(int vertices, const std::vector<Pair>& pairs)
    : first_(Index(vertices) + 1, 0), others_(pairs.size()) {
  for (const Pair& pair : pairs) ++first_[Index(pair.first) + 1];
  for (size_t v = 0; v < Index(vertices); ++v) first_[v + 1] += first_[v];
  std::vector<size_t> next(first_.begin(), first_.end() - 1);
  for (const Pair& pair : pairs) others_[next[Index(pair.first)]++] = pair.second;
}

GradientSums::GradientSums(const Graph& graph)
    : GradientSums(graph, EachAlone(graph.size()), graph.size()) {}

GradientSums::GradientSums(const Graph& graph, const std::vector<std::vector<int>>& groups)
    : GradientSums(graph, GroupOf(graph.size(), groups), static_cast<int>(groups.size())) {}

GradientSums::GradientSums(const Graph& graph, const std::vector<int>& group_of, int groups) {
  std::vector<Pair> before;
  for (const auto& readers_of : {ReadersThroughViews(graph), ReadersBesideViews(graph)}) {
    for (int v = 0; v < graph.size(); ++v) {
      const std::vector<int>& readers = readers_of[Index(v)];
      if (readers.size() < 2 || graph.vertex(v).output_gradient == Bytes(0)) continue;
      int last = -1;
      for (const int reader : readers) {
        const int group = group_of[Index(reader)];
        if (group == group_of[Index(v)]) continue;  // runs with v, hence after all others
        if (last >= 0 && last < group) before.push_back({last, group});
        last = std::max(last, group);
      }
    }
  }
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  std::vector<Pair> after;
  for (const Pair& pair : before) after.push_back({pair.second, pair.first});
  before_ = Lists(groups, before);
  after_ = Lists(groups, after);
}

bool GradientSums::KeptBy(const Schedule& schedule) const {
  std::vector<bool> ran;
  for (const Instruction& i : schedule) {
    if (i.op != Op::kBackward) continue;
    const size_t v = Index(i.stage - 1);
    const absl::Span<const int> before = Before(i.stage - 1);
    const auto has_run = [&](int u) { return Index(u) < ran.size() && ran[Index(u)]; };
    if (!std::all_of(before.begin(), before.end(), has_run)) return false;
    if (ran.size() <= v) ran.resize(v + 1, false);
    ran[v] = true;
  }
  return true;
}

Schedule GradientSums::WithViewsInOrder(const Graph& graph, const Schedule& schedule) const {
  ViewDrawer drawer(graph, *this, schedule.size());
  for (const Instruction& i : schedule) drawer.Add(i);
  return drawer.Take();
}

}  // namespace stowage
