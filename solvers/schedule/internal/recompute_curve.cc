#include "solvers/schedule/internal/recompute_curve.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/numeric/int128.h"
#include "solvers/model/index.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/internal/recompute_hull.h"
#include "solvers/schedule/internal/time_step_needs.h"

namespace stowage {

using absl::int128;

namespace {

bool CostsLess(const HullStep& a, const HullStep& b) {
  return int128(a.time) * b.bytes < int128(b.time) * a.bytes;
}

// The least of max(falling(x), rising(x)) for x in 0..last.
template <class Falling, class Rising>
int64_t LeastOfLarger(int64_t last, const Falling& falling, const Rising& rising) {
  if (rising(last) < falling(last)) return falling(last);
  int64_t low = 0, high = last;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (rising(middle) >= falling(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low == 0 ? rising(0) : std::min(rising(low), falling(low - 1));
}

// The most bytes up to `most` that take no more than the time; 0 takes none.
int64_t LastWithin(int64_t most, int64_t time, const CopySide& side) {
  int64_t low = 0, high = most;
  while (low < high) {
    const int64_t middle = high - (high - low) / 2;
    if (side.RoundedUp(middle) <= time) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

}  // namespace

CopySide::CopySide(const CopyCost& copy, const std::vector<CopyLimit>& limits)
    : copy_(copy), limits_(limits) {
  int128 delay = 0;
  for (const CopyLimit& limit : limits) {
    delay = std::max(
        delay, int128(limit.time) * copy.bytes_per_second - int128(limit.bytes) * kNanosPerSecond);
    delays_.push_back(delay);
  }
}

int64_t CopySide::Time(int64_t bytes, int64_t more) const {
  const auto reached =
      std::lower_bound(limits_.begin(), limits_.end(), bytes,
                       [](const CopyLimit& limit, int64_t b) { return limit.bytes < b; }) -
      limits_.begin();
  const int128 delay = reached == 0 ? 0 : delays_[static_cast<size_t>(reached) - 1];
  const int128 time = (int128(bytes) * kNanosPerSecond + delay + more) / copy_.bytes_per_second;
  return static_cast<int64_t>(std::min(time, int128(kMaxTimeTotal)));
}

TimeStepCurve::TimeStepCurve(int64_t all, Nanos before, Nanos after, std::vector<HullStep> steps)
    : all_(all), before_(before.value()), after_(after.value()) {
  std::stable_sort(steps.begin(), steps.end(), CostsLess);
  Corner corner = {0, 0};
  for (const HullStep& step : steps) {
    corner.bytes += step.bytes;
    corner.time += step.time;
    corners_.push_back(corner);
  }
}

int64_t TimeStepCurve::Repeated(int64_t bytes) const {
  if (all_ <= bytes || corners_.empty()) return 0;
  const int64_t lacking = std::min(all_ - std::max<int64_t>(bytes, 0), corners_.back().bytes);
  const auto at = std::lower_bound(corners_.begin(), corners_.end(), lacking,
                                   [](const Corner& c, int64_t least) { return c.bytes < least; });
  const Corner before = at == corners_.begin() ? Corner{0, 0} : *(at - 1);
  const int128 step = at->bytes - before.bytes;
  const int128 part = int128(at->time - before.time) * (lacking - before.bytes);
  // Makespans are whole.
  return before.time + static_cast<int64_t>((part + step - 1) / step);
}

TimeStepCurve::Corner TimeStepCurve::CheaperThan(const CopyCost& copy) const {
  Corner last = {0, 0};
  for (const Corner& corner : corners_) {
    if (int128(corner.time - last.time) * copy.bytes_per_second >
        int128(corner.bytes - last.bytes) * kNanosPerSecond) {
      break;
    }
    last = corner;
  }
  return last;
}

int64_t TimeStepCurve::Makespan(int64_t bytes, int64_t ideal_time, const CopySide& to_host,
                                const CopySide& to_device, Bytes host_memory) const {
  bytes = std::max<int64_t>(bytes, 0);
  if (all_ <= bytes) return ideal_time;
  const int64_t lacking = all_ - bytes;
  const int64_t most = std::min(lacking, host_memory.value());
  const auto computed = [&](int64_t on_host) { return ideal_time + Repeated(bytes + on_host); };
  const auto copied = [&](int64_t on_host) {
    return std::max(before_, to_host.RoundedUp(on_host)) + to_device.RoundedUp(on_host);
  };
  // So many bytes leave beside what is computed before the time step, if all is that may be.
  const int64_t beside = LastWithin(most, ideal_time - after_, to_host);
  if (beside == most) return LeastOfLarger(most, computed, copied);
  // Each further byte holds up what comes after the time step, and saves the dearest repeats.
  const Corner cheap = CheaperThan(to_host.copy());
  const int64_t best = lacking - cheap.bytes;
  if (best <= beside + 1) return LeastOfLarger(beside + 1, computed, copied);
  const int128 further =
      int128(best - beside - 1) * kNanosPerSecond / to_host.copy().bytes_per_second;
  const int64_t held_up = after_ + to_host.RoundedDown(beside + 1) + cheap.time +
                          static_cast<int64_t>(std::min(further, int128(kMaxTimeTotal)));
  return std::min(LeastOfLarger(beside, computed, copied),
                  std::max({held_up, copied(beside + 1), ideal_time}));
}

namespace {

// Of these the ones that need most memory, overall and in each part of the order in which they come, are looked at.
constexpr size_t kParts = 12;
constexpr size_t kMost = 12;
// Vertices and inputs, or stages, that are looked at for all time steps together.
constexpr int64_t kMaxWork = 5000000;

template <class Moment>
std::vector<Moment> Chosen(std::vector<Moment> moments, int64_t work) {
  const auto more = [](const Moment& a, const Moment& b) { return a.bytes > b.bytes; };
  std::vector<Moment> chosen;
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
  const auto affordable = static_cast<size_t>(std::max<int64_t>(kMaxWork / work, 1));
  if (chosen.size() > affordable) chosen.resize(affordable);
  return chosen;
}

// Of times and the bytes that have them.
std::vector<CopyLimit> LimitsOf(std::vector<CopyLimit> timed) {
  std::sort(timed.begin(), timed.end(),
            [](const CopyLimit& a, const CopyLimit& b) { return a.time < b.time; });
  std::vector<CopyLimit> limits;
  int64_t sooner = 0;
  for (const CopyLimit& one : timed) {
    if (limits.empty() || limits.back().time < one.time) limits.push_back({sooner, one.time});
    sooner += one.bytes;
  }
  return limits;
}

class GraphCurveBuilder {
 public:
  explicit GraphCurveBuilder(const Graph& graph) : graph_(graph), needs_(graph) {}

  std::vector<TimeStepCurve> Run() {
    std::vector<TimeStepCurve> time_steps;
    for (const GraphMoment& moment : Chosen(needs_.AlongLongestPath(), needs_.work())) {
      const TimeStepNeeds needs = needs_.At(moment);
      if (needs.all >= static_cast<double>(kMaxTotal)) continue;
      Group(needs);
      RecomputeHull sum;
      sum.held = needs.beside;
      for (const std::vector<int>& members : groups_) {
        if (!members.empty()) AddHulls(needs, members, &sum);
      }
      time_steps.emplace_back(sum.held, needs.before, needs.after, std::move(sum.steps));
    }
    return time_steps;
  }

  // Of storages and extras: no sooner than a path of forwards up to the op that makes them.
  std::vector<CopyLimit> Made() const {
    std::vector<int64_t> end(Index(graph_.size()), 0);
    std::vector<CopyLimit> timed;
    for (int p = 0; p < graph_.size(); ++p) {
      const Vertex& v = graph_.vertex(p);
      int64_t& time = end[Index(p)];
      for (const GraphInput& input : v.inputs) {
        time = std::max(time, end[Index(static_cast<int>(input.vertex))]);
      }
      time += v.forward_time.value();
      timed.push_back({(graph_.bytes(p) + v.extra_saved).value(), time});
    }
    return LimitsOf(std::move(timed));
  }

  // No later than before a path of backwards, down from one that needs them or, in the end, what they are read for. Of a compute
  // DAG any time will do.
  std::vector<CopyLimit> Due() const {
    if (!graph_.has_backwards()) return {};
    constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
    std::vector<int64_t> backward(Index(graph_.size()), 0);  // from its start to the end
    for (int p = 0; p < graph_.size(); ++p) {
      for (const GraphInput& input : graph_.vertex(p).inputs) {
        backward[Index(p)] =
            std::max(backward[Index(p)], backward[Index(static_cast<int>(input.vertex))]);
      }
      backward[Index(p)] += graph_.vertex(p).backward_time.value();
    }
    std::vector<int64_t> output(backward.size(), kNever), storage(backward.size(), kNever);
    std::vector<CopyLimit> timed;
    const GraphVersions& versions = needs_.versions();
    const auto use = [&output](int maker, int64_t time) {
      output[Index(maker)] = std::min(output[Index(maker)], time);
    };
    for (int p = graph_.size() - 1; p >= 0; --p) {
      const Vertex& v = graph_.vertex(p);
      if (v.backward_needs_output) use(versions.made(p), backward[Index(p)]);
      // What a forward is run for.
      int64_t made = versions.made(p) == p ? output[Index(p)] : kNever;
      if (v.extra_saved > Bytes(0)) {
        made = std::min(made, backward[Index(p)]);
        timed.push_back({v.extra_saved.value(), backward[Index(p)]});
      }
      for (size_t k = 0; k < v.inputs.size(); ++k) {
        use(versions.read(p, k), made);
        if (v.inputs[k].backward_needs) use(versions.read(p, k), backward[Index(p)]);
      }
    }
    for (int p = 0; p < graph_.size(); ++p) {
      int64_t& time = storage[Index(graph_.storage(p))];
      time = std::min(time, output[Index(p)]);
    }
    for (int p = 0; p < graph_.size(); ++p) {
      if (storage[Index(p)] != kNever)
        timed.push_back({graph_.bytes(p).value(), storage[Index(p)]});
    }
    return LimitsOf(std::move(timed));
  }

 private:
  // Beyond, what ops need of each other is not looked at.
  static constexpr size_t kMaxCells = 96;
  // Squares of the sizes of groups that differ, so that a graph without layers takes a second at most.
  static constexpr int64_t kMaxSolved = 1000000;

  // Vertices whose choices depend on each other, in groups.
  void Group(const TimeStepNeeds& needs) {
    groups_.clear();
    group_of_.assign(Index(graph_.size()), kNoIndex);
    for (int p = graph_.size() - 1; p >= 0; --p) {
      if (group_of_[Index(p)] != kNoIndex || !needs.HasChoice(graph_, p)) continue;
      group_of_[Index(p)] = static_cast<int>(groups_.size());
      groups_.push_back({p});
      Gather(needs, static_cast<int>(groups_.size()) - 1);
    }
    for (std::vector<int>& members : groups_) std::sort(members.begin(), members.end());
  }

  // What repeats of the group's members read, and no backward needs later. Where another group has it already, both are
  // one. O(n log n) for all groups together: of two that become one the smaller one moves.
  void Gather(const TimeStepNeeds& needs, int group) {
    std::vector<int> open =
        groups_[Index(group)];  // members whose inputs are still to be looked at
    while (!open.empty()) {
      const int p = open.back();
      open.pop_back();
      ForEachOpenInput(needs, p, [&](int maker) {
        const int other = group_of_[Index(maker)];
        if (other == group) return;
        if (other == kNoIndex) {
          group_of_[Index(maker)] = group;
          groups_[Index(group)].push_back(maker);
          open.push_back(maker);
          return;
        }
        int from = other, into = group;
        if (groups_[Index(from)].size() > groups_[Index(into)].size()) std::swap(from, into);
        std::vector<int>& moved = groups_[Index(from)];
        for (const int member : moved) group_of_[Index(member)] = into;
        groups_[Index(into)].insert(groups_[Index(into)].end(), moved.begin(), moved.end());
        moved.clear();
        group = into;
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
    if (members.size() <= kMaxCells && solved_ < kMaxSolved) {
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
    if (is_new) {
      solved_ += static_cast<int64_t>(cells.size() * cells.size());
      at->second = HullOf(cells);
    }
    return at->second;
  }

  const Graph& graph_;
  GraphMoments needs_;
  std::vector<std::vector<int>> groups_;
  std::vector<int> group_of_;
  std::map<std::vector<int64_t>, RecomputeHull> hulls_;
  int64_t solved_ = 0;
  RecomputeHull simple_;
};

// The time steps of stage l: its backward, and the forward that last saves what this uses.
class ChainCurveBuilder {
 public:
  explicit ChainCurveBuilder(const Chain& chain) : chain_(chain) {
    const int last = chain.length() + 1;
    least_gradient_.assign(Index(last) + 1, chain.gradient(last));
    for (int l = last; l >= 1; --l) {
      const size_t above = Index(std::min(l + 1, last));
      least_gradient_[Index(l)] = std::min(least_gradient_[above], chain.gradient(l));
    }
  }

  std::vector<TimeStepCurve> Run() {
    std::vector<Moment> moments;
    Bytes below;
    for (int l = 1; l <= chain_.length() + 1; ++l) {
      for (const bool backward : {false, true}) {
        moments.push_back({l, backward, (below + Own(l, backward)).value()});
      }
      below += chain_.stage(l).saved;
    }
    std::vector<TimeStepCurve> time_steps;
    for (const Moment& moment : Chosen(std::move(moments), chain_.length() + 1)) {
      time_steps.push_back(CurveOf(moment));
    }
    return time_steps;
  }

  // a^0 is there; what a stage saves, once its first forward has ended.
  std::vector<CopyLimit> Made() const {
    std::vector<CopyLimit> timed = {{chain_.activation(0).value(), 0}};
    Nanos time;
    for (int l = 1; l <= chain_.length() + 1; ++l) {
      time += chain_.stage(l).forward_time;
      timed.push_back({chain_.stage(l).saved.value(), time.value()});
    }
    return LimitsOf(std::move(timed));
  }

  // Before its backward, and backward 1.
  std::vector<CopyLimit> Due() const {
    Nanos time = chain_.stage(1).backward_time;
    std::vector<CopyLimit> timed = {{chain_.activation(0).value(), time.value()}};
    for (int l = 1; l <= chain_.length() + 1; ++l) {
      if (l > 1) time += chain_.stage(l).backward_time;
      timed.push_back({chain_.stage(l).saved.value(), time.value()});
    }
    return LimitsOf(std::move(timed));
  }

 private:
  struct Moment {
    int stage;
    bool backward;
    int64_t bytes;  // where all is held that is needed later
  };

  // What the time step takes beside what is needed later of stages below; a^0 among it, which backward 1 needs.
  Bytes Own(int l, bool backward) const {
    const Stage& s = chain_.stage(l);
    const bool may_stop = s.stops() && s.recomputable();
    Bytes own = s.saved;
    if (backward) {
      if (may_stop) own = s.stopped_saved();
      own += s.output_gradient + s.backward_overhead;
    } else {
      own += least_gradient_[Index(l)] + s.forward_saving_overhead;
      if (may_stop) {
        own = std::min(own, s.stopped_saved() + s.output_gradient + s.stopped_overhead());
      }
    }
    return chain_.activation(0) + own;
  }

  TimeStepCurve CurveOf(const Moment& moment) const {
    std::vector<HullStep> steps;
    Nanos before, after;
    for (int i = 1; i <= chain_.length() + 1; ++i) {
      const Stage& s = chain_.stage(i);
      if (i < moment.stage || moment.backward) before += s.forward_time;
      if (i <= moment.stage) after += s.backward_time;
      if (i > moment.stage && moment.backward) before += s.backward_time;
      if (i < moment.stage && s.recomputable() && s.saved > Bytes(0)) {
        steps.push_back({s.saved.value(), s.stopped_time().value()});
      }
    }
    return TimeStepCurve(moment.bytes, before, after, std::move(steps));
  }

  const Chain& chain_;
  std::vector<Bytes> least_gradient_;  // of a stage or one above
};

}  // namespace

RecomputeCurve::RecomputeCurve(const Problem& problem) : ideal_time_(IdealTime(problem)) {
  const auto build = [this](auto builder) {
    time_steps_ = builder.Run();
    made_ = builder.Made();
    due_ = builder.Due();
  };
  if (const Chain* chain = std::get_if<Chain>(&problem)) {
    build(ChainCurveBuilder(*chain));
  } else if (const Graph& graph = std::get<Graph>(problem); graph.size() > 0) {
    build(GraphCurveBuilder(graph));
  }
}

Nanos RecomputeCurve::RepeatedWithin(Bytes budget) const {
  int64_t most = 0;
  for (const TimeStepCurve& step : time_steps_) {
    most = std::max(most, step.Repeated(budget.value()));
  }
  return Nanos(most);
}

Nanos RecomputeCurve::MakespanWithin(Bytes budget, const TransferModel& link) const {
  const CopySide to_host(link.to_host, made_), to_device(link.to_device, due_);
  int64_t most = ideal_time_.value();
  for (const TimeStepCurve& step : time_steps_) {
    most = std::max(most, step.Makespan(budget.value(), ideal_time_.value(), to_host, to_device,
                                        link.host_memory));
  }
  return Nanos(most);
}

}  // namespace stowage
