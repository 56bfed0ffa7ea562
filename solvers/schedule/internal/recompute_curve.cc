#include "solvers/schedule/internal/recompute_curve.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/numeric/int128.h"
#include "solvers/model/index.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/internal/recompute_hull.h"
#include "solvers/schedule/internal/time_step_needs.h"

namespace stowage {

using absl::int128;

class RecomputeCurveBuilder {
 public:
  explicit RecomputeCurveBuilder(const Graph& graph) : graph_(graph), needs_(graph) {}

  std::vector<RecomputeCurve::TimeStep> Run() {
    std::vector<RecomputeCurve::TimeStep> time_steps;
    for (const GraphMoment& moment : Chosen()) {
      std::optional<RecomputeCurve::TimeStep> time_step = Solve(needs_.At(moment));
      if (time_step) time_steps.push_back(*std::move(time_step));
    }
    return time_steps;
  }

 private:
  // Of these the ones that need most memory, overall and in each part of a longest path, are looked at.
  static constexpr size_t kParts = 12;
  static constexpr size_t kMost = 12;
  // Vertices and inputs that are looked at for all time steps together.
  static constexpr int64_t kMaxWork = 20000000;
  // Beyond, what ops need of each other is not looked at.
  static constexpr size_t kMaxCells = 96;

  std::vector<GraphMoment> Chosen() {
    std::vector<GraphMoment> moments = needs_.AlongLongestPath();
    const auto more = [](const GraphMoment& a, const GraphMoment& b) { return a.bytes > b.bytes; };
    std::vector<GraphMoment> chosen;
    for (size_t part = 0; part < kParts; ++part) {
      const auto begin =
          moments.begin() + static_cast<std::ptrdiff_t>(moments.size() * part / kParts);
      const auto end =
          moments.begin() + static_cast<std::ptrdiff_t>(moments.size() * (part + 1) / kParts);
      if (begin == end) continue;
      std::stable_sort(begin, end, more);
      chosen.push_back(*begin);
      begin->bytes = -1;
    }
    std::stable_sort(moments.begin(), moments.end(), more);
    for (size_t i = 0; i < std::min(kMost, moments.size()) && moments[i].bytes >= 0; ++i) {
      chosen.push_back(moments[i]);
    }
    std::stable_sort(chosen.begin(), chosen.end(), more);
    const auto affordable = static_cast<size_t>(std::max<int64_t>(kMaxWork / needs_.work(), 1));
    if (chosen.size() > affordable) chosen.resize(affordable);
    return chosen;
  }

  std::optional<RecomputeCurve::TimeStep> Solve(const TimeStepNeeds& needs) {
    Group(needs);
    if (needs.all >= static_cast<double>(kMaxTotal)) return std::nullopt;
    RecomputeHull sum;
    sum.held = needs.beside;
    for (const std::vector<int>& members : groups_) {
      if (!members.empty()) AddHulls(needs, members, &sum);
    }
    RecomputeCurve::TimeStep result;
    result.all = sum.held;
    std::stable_sort(sum.steps.begin(), sum.steps.end(), [](const HullStep& a, const HullStep& b) {
      return int128(a.time) * b.bytes < int128(b.time) * a.bytes;
    });
    RecomputeCurve::Corner corner = {0, 0};
    for (const HullStep& step : sum.steps) {
      corner.bytes += step.bytes;
      corner.time += step.time;
      result.corners.push_back(corner);
    }
    return result;
  }

  // Vertices whose choices depend on each other, in groups.
  void Group(const TimeStepNeeds& needs) {
    groups_.clear();
    group_of_.assign(Index(graph_.size()), kNoIndex);
    for (int p = graph_.size() - 1; p >= 0; --p) {
      if (group_of_[Index(p)] != kNoIndex || !needs.HasChoice(graph_, p)) continue;
      group_of_[Index(p)] = static_cast<int>(groups_.size());
      groups_.push_back({p});
      Gather(needs, groups_.size() - 1);
    }
    for (std::vector<int>& members : groups_) std::sort(members.begin(), members.end());
  }

  // What repeats of the group's members read, and no backward needs later. Where another group has it already, both are
  // one.
  void Gather(const TimeStepNeeds& needs, size_t group) {
    for (size_t i = 0; i < groups_[group].size(); ++i) {
      const int p = groups_[group][i];
      ForEachOpenInput(needs, p, [&](int maker) {
        const int other = group_of_[Index(maker)];
        if (other == static_cast<int>(group)) return;
        if (other == kNoIndex) {
          group_of_[Index(maker)] = static_cast<int>(group);
          groups_[group].push_back(maker);
          return;
        }
        std::vector<int>& members = groups_[Index(other)];
        for (const int member : members) group_of_[Index(member)] = static_cast<int>(group);
        groups_[group].insert(groups_[group].end(), members.begin(), members.end());
        members.clear();
      });
    }
  }

  template <class Visit>
  void ForEachOpenInput(const TimeStepNeeds& needs, int p, const Visit& visit) const {
    if (!Recomputable(graph_.vertex(p))) return;
    for (size_t k = 0; k < graph_.vertex(p).inputs.size(); ++k) {
      const int maker = needs_.versions().read(p, k);
      if (!needs.output_needed[Index(maker)] && !needs.IsThere(graph_, maker)) visit(maker);
    }
  }

  void AddHulls(const TimeStepNeeds& needs, const std::vector<int>& members, RecomputeHull* sum) {
    if (members.size() <= kMaxCells) {
      Add(Cells(needs, members, /*with_inputs=*/true), sum);
      return;
    }
    for (const int p : members) Add(Cells(needs, {p}, /*with_inputs=*/false), sum);
  }

  void Add(const std::vector<RecomputeCell>& cells, RecomputeHull* sum) {
    const RecomputeCell& first = cells.front();
    const bool simple = cells.size() == 1 && first.stopped_time == first.time;
    const RecomputeHull& hull = simple ? AllOrNothing(first) : HullOfCells(cells);
    sum->held += hull.held;
    sum->steps.insert(sum->steps.end(), hull.steps.begin(), hull.steps.end());
  }

  // One repeat brings back all that the op makes.
  const RecomputeHull& AllOrNothing(const RecomputeCell& cell) {
    simple_.held = (cell.output_needed ? cell.output : 0) + cell.extras;
    simple_.steps.clear();
    if (cell.repeatable && simple_.held > 0) simple_.steps.push_back({simple_.held, cell.time});
    return simple_;
  }

  std::vector<RecomputeCell> Cells(const TimeStepNeeds& needs, const std::vector<int>& members,
                                   bool with_inputs) {
    std::vector<RecomputeCell> cells;
    for (const int p : members) {
      const Vertex& v = graph_.vertex(p);
      RecomputeCell cell;
      cell.output_needed = needs.output_needed[Index(p)] && !needs.IsThere(graph_, p);
      cell.output = graph_.bytes(graph_.storage(p)).value();
      cell.extras = needs.extras_needed[Index(p)] ? v.extra_saved.value() : 0;
      cell.repeatable = Recomputable(v);
      cell.time = v.forward_time.value();
      cell.stopped_time = v.stopped_time().value();
      if (with_inputs) {
        ForEachOpenInput(needs, p, [&](int maker) {
          const auto at = std::lower_bound(members.begin(), members.end(), maker);
          cell.inputs.push_back(static_cast<int>(at - members.begin()));
        });
      }
      cells.push_back(std::move(cell));
    }
    return cells;
  }

  // Layers repeat, and so do ops from one time step to the next.
  const RecomputeHull& HullOfCells(const std::vector<RecomputeCell>& cells) {
    std::vector<int64_t> key;
    for (const RecomputeCell& cell : cells) {
      key.insert(key.end(),
                 {cell.output_needed, cell.output, cell.extras, cell.repeatable, cell.time,
                  cell.stopped_time, static_cast<int64_t>(cell.inputs.size())});
      key.insert(key.end(), cell.inputs.begin(), cell.inputs.end());
    }
    const auto [at, is_new] = hulls_.try_emplace(std::move(key));
    if (is_new) at->second = HullOf(cells);
    return at->second;
  }

  const Graph& graph_;
  GraphMoments needs_;
  std::vector<std::vector<int>> groups_;
  std::vector<int> group_of_;
  std::map<std::vector<int64_t>, RecomputeHull> hulls_;
  RecomputeHull simple_;
};

RecomputeCurve::RecomputeCurve(const Graph& graph) {
  if (graph.has_backwards() && graph.size() > 0) {
    time_steps_ = RecomputeCurveBuilder(graph).Run();
  }
}

Nanos RecomputeCurve::At(Bytes budget) const {
  int64_t most = 0;
  for (const TimeStep& time_step : time_steps_) {
    if (time_step.all <= budget.value() || time_step.corners.empty()) continue;
    const std::vector<Corner>& corners = time_step.corners;
    const int64_t lacking =
        std::min(time_step.all - std::max<int64_t>(budget.value(), 0), corners.back().bytes);
    const auto at =
        std::lower_bound(corners.begin(), corners.end(), lacking,
                         [](const Corner& c, int64_t bytes) { return c.bytes < bytes; });
    const Corner before = at == corners.begin() ? Corner{0, 0} : *(at - 1);
    const int128 bytes = at->bytes - before.bytes;
    const int128 part = int128(at->time - before.time) * (lacking - before.bytes);
    // Makespans are whole.
    most = std::max(most, before.time + static_cast<int64_t>((part + bytes - 1) / bytes));
  }
  return Nanos(most);
}

}  // namespace stowage
