#include "solvers/graph/internal/order_trials.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "solvers/model/index.h"

namespace stowage {
namespace {

// Over no target, whatever else is held.
constexpr int64_t kFarBelow = std::numeric_limits<int64_t>::min() / 2;

}  // namespace

OrderTrials::OrderTrials(const OpGraph& graph)
    : graph_(graph),
      touched_in_(Index(graph.size()), 0),
      inserted_in_(Index(graph.size()), 0),
      inserted_of_(Index(graph.size()), kNoIndex),
      saving_(Index(graph.size()), -1) {}

// Calls it with every vertex whose output the compute uses.
template <class Use>
void OrderTrials::ForUses(const Compute& c, const Use& use) const {
  for (const OpGraph::Input& input : graph_.inputs(c.vertex)) {
    if (!c.backward || input.backward_needs) use(input.vertex);
  }
  if (c.backward && graph_.costs(c.vertex).backward_needs_output) use(c.vertex);
}

bool OrderTrials::Start(const OrderProfile& profile, const OrderCost& cost, int64_t target) {
  const auto leaves_extras = [](const Compute& c) { return c.extras_stay; };
  if (graph_.stops() || std::any_of(profile.order.begin(), profile.order.end(), leaves_extras)) {
    return false;
  }
  order_ = profile.order;
  target_ = target;
  cost_ = {0, cost.forward_time, cost.overload};
  held_ = profile.held;
  over_.resize(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) over_[i] = profile.running[i] - target;
  states_.assign(order_.size(), State::kRuns);
  changed_states_.resize(order_.size());
  changed_.assign(order_.size(), change_);
  backward_.assign(Index(graph_.size()), kNoIndex);
  first_make_.assign(Index(graph_.size()) + 1, 0);
  first_use_.assign(Index(graph_.size()) + 1, 0);
  for (const Compute& c : order_) {
    if (!c.backward) ++first_make_[Index(c.vertex) + 1];
    ForUses(c, [this](int u) { ++first_use_[Index(u) + 1]; });
  }
  for (size_t v = 0; v < Index(graph_.size()); ++v) {
    first_make_[v + 1] += first_make_[v];
    first_use_[v + 1] += first_use_[v];
  }
  makes_.resize(Index(first_make_.back()));
  uses_.resize(Index(first_use_.back()));
  // Filled from the end, so that the firsts are right when all are there.
  std::vector<int>& next_make = scratch_;
  next_make.assign(first_make_.begin() + 1, first_make_.end());
  std::vector<int>& next_use = more_scratch_;
  next_use.assign(first_use_.begin() + 1, first_use_.end());
  for (size_t i = order_.size(); i-- > 0;) {
    const Compute& c = order_[i];
    const int at = static_cast<int>(i);
    if (c.backward) {
      backward_[Index(c.vertex)] = at;
    } else {
      makes_[Index(--next_make[Index(c.vertex)])] = at;
    }
    ForUses(c, [&](int u) { uses_[Index(--next_use[Index(u)])] = at; });
  }
  started_ += static_cast<int64_t>(makes_.size() + uses_.size());
  return true;
}

OrderCost OrderTrials::Without(int index) {
  Begin();
  TakeOut(index);
  Settle();
  return Sum();
}

OrderCost OrderTrials::With(int before, absl::Span<const int> vertices, bool instead_of_next) {
  Begin();
  Time time = Time{before} * kStride;
  for (const int v : vertices) {
    if (instead_of_next) {
      const absl::Span<const int> makes = Makes(v);
      const auto next = std::lower_bound(makes.begin(), makes.end(), before);
      if (next != makes.end()) TakeOut(*next);
    }
    Insert(v, ++time);
  }
  Settle();
  return Sum();
}

OrderCost OrderTrials::Moved(int index, int before) {
  Begin();
  TakeOut(index);
  Insert(order_[Index(index)].vertex, Time{before} * kStride + 1);
  Settle();
  return Sum();
}

void OrderTrials::Begin() {
  ++change_;
  ++trials_;
  changed_indices_.clear();
  touched_.clear();
  inserted_.clear();
  open_.clear();
}

OrderTrials::State OrderTrials::StateOf(int index) const {
  const auto i = Index(index);
  return changed_[i] == change_ ? changed_states_[i] : states_[i];
}

void OrderTrials::Set(int index, State state) {
  const auto i = Index(index);
  if (changed_[i] != change_) changed_indices_.push_back(index);
  changed_[i] = change_;
  changed_states_[i] = state;
}

void OrderTrials::TakeOut(int index) {
  const int v = order_[Index(index)].vertex;
  const bool ran = StateOf(index) == State::kRuns;
  Set(index, State::kOut);
  LookBefore(v, TimeOf(index));
  if (ran) LookAtInputs(v, TimeOf(index));
}

void OrderTrials::Insert(int vertex, Time time) {
  open_.push_back({time, vertex, static_cast<int>(inserted_.size())});
  std::push_heap(open_.begin(), open_.end());
  inserted_in_[Index(vertex)] = change_;
  inserted_of_[Index(vertex)] = static_cast<int>(inserted_.size());
  inserted_.push_back({vertex, time, false});
  Touch(vertex);
}

void OrderTrials::Touch(int v) {
  if (touched_in_[Index(v)] == change_) return;
  touched_in_[Index(v)] = change_;
  touched_.push_back(v);
}

void OrderTrials::LookBefore(int v, Time time) {
  Touch(v);
  Make latest = {-1, v, -1};
  const absl::Span<const int> makes = Makes(v);
  const auto later = std::lower_bound(makes.begin(), makes.end(), time,
                                      [](int i, Time t) { return TimeOf(i) < t; });
  for (auto make = later; make != makes.begin();) {
    ++looked_at_;
    if (StateOf(*--make) == State::kOut) continue;
    latest.time = TimeOf(*make);
    break;
  }
  const Inserted* const inserted = InsertedOf(v);
  if (inserted != nullptr && latest.time < inserted->time && inserted->time < time) {
    latest = {inserted->time, v, inserted_of_[Index(v)]};
  }
  if (latest.time < 0) return;
  open_.push_back(latest);
  std::push_heap(open_.begin(), open_.end());
}

void OrderTrials::LookAtInputs(int v, Time time) {
  for (const OpGraph::Input& input : graph_.inputs(v)) LookBefore(input.vertex, time);
}

const OrderTrials::Inserted* OrderTrials::InsertedOf(int v) const {
  return inserted_in_[Index(v)] == change_ ? &inserted_[Index(inserted_of_[Index(v)])] : nullptr;
}

bool OrderTrials::UsedBetween(int v, Time from, Time to) const {
  const absl::Span<const int> uses = Uses(v);
  for (auto use = std::lower_bound(uses.begin(), uses.end(), LaterThan(from));
       use != uses.end() && TimeOf(*use) < to; ++use) {
    ++looked_at_;
    if (order_[Index(*use)].backward || StateOf(*use) == State::kRuns) return true;
  }
  if (graph_.costs(v).result && to > End()) return true;
  if (inserted_.empty()) return false;
  const absl::Span<const int> readers = graph_.readers(v);
  looked_at_ += static_cast<int64_t>(readers.size());
  return std::any_of(readers.begin(), readers.end(), [&](int reader) {
    const Inserted* const one = InsertedOf(reader);
    return one != nullptr && one->runs && from < one->time && one->time < to;
  });
}

OrderTrials::Time OrderTrials::NextMake(int v, Time time) const {
  Time next = End() + 1;
  const absl::Span<const int> makes = Makes(v);
  for (auto make = std::lower_bound(makes.begin(), makes.end(), LaterThan(time));
       make != makes.end(); ++make) {
    ++looked_at_;
    if (StateOf(*make) != State::kRuns) continue;
    next = TimeOf(*make);
    break;
  }
  const Inserted* const inserted = InsertedOf(v);
  const bool counts = inserted != nullptr && inserted->runs && inserted->time > time;
  return counts ? std::min(next, inserted->time) : next;
}

bool OrderTrials::IsFirst(int v, Time time) const {
  for (const int make : Makes(v)) {
    if (TimeOf(make) >= time) break;
    ++looked_at_;
    if (StateOf(make) != State::kOut) return false;
  }
  const Inserted* const inserted = InsertedOf(v);
  return inserted == nullptr || inserted->time >= time;
}

// As OrderEvaluator::IsDead has it.
bool OrderTrials::Runs(const Make& make) const {
  const OpGraph::Costs& costs = graph_.costs(make.vertex);
  const Time next = NextMake(make.vertex, make.time);
  const int backward = backward_[Index(make.vertex)];
  if (costs.extra > 0 && backward != kNoIndex && make.time < TimeOf(backward) &&
      TimeOf(backward) < next) {
    return true;
  }
  if (UsedBetween(make.vertex, make.time, next)) return true;
  return IsFirst(make.vertex, make.time) && (next > End() || costs.ordered);
}

// A change makes forwards run, or not, at earlier times alone.
void OrderTrials::Settle() {
  while (!open_.empty()) {
    std::pop_heap(open_.begin(), open_.end());
    const Make make = open_.back();
    open_.pop_back();
    const int index = LaterThan(make.time) - 1;
    const bool ran =
        make.inserted < 0 ? StateOf(index) == State::kRuns : inserted_[Index(make.inserted)].runs;
    const bool runs = Runs(make);
    // What a forward does not run for, one before it may.
    if (!runs || !ran) LookBefore(make.vertex, make.time);
    if (runs == ran) continue;
    if (make.inserted < 0) {
      Set(index, runs ? State::kRuns : State::kDead);
    } else {
      inserted_[Index(make.inserted)].runs = runs;
    }
    LookAtInputs(make.vertex, make.time);
  }
}

void OrderTrials::FindLives(int v, bool changed, Held* held) {
  std::vector<Time>& makes = make_times_;
  std::vector<Time>& uses = use_times_;
  makes.clear();
  uses.clear();
  const auto runs = [&](int i) {
    return (changed ? StateOf(i) : states_[Index(i)]) == State::kRuns;
  };
  for (const int make : Makes(v)) {
    if (runs(make)) makes.push_back(TimeOf(make));
  }
  for (const int use : Uses(v)) {
    if (order_[Index(use)].backward || runs(use)) uses.push_back(TimeOf(use));
  }
  looked_at_ += static_cast<int64_t>(Makes(v).size() + Uses(v).size());
  if (graph_.costs(v).result) uses.push_back(End());
  if (changed && !inserted_.empty()) {
    const auto add = [this](int u, std::vector<Time>* times) {
      const Inserted* const one = InsertedOf(u);
      if (one == nullptr || !one->runs) return;
      times->insert(std::upper_bound(times->begin(), times->end(), one->time), one->time);
    };
    add(v, &makes);
    for (const int reader : graph_.readers(v)) add(reader, &uses);
    looked_at_ += static_cast<int64_t>(graph_.readers(v).size());
  }
  held->output.clear();
  held->extras.clear();
  held->saving = -1;
  const int backward = graph_.costs(v).extra > 0 ? backward_[Index(v)] : kNoIndex;
  size_t use = 0;
  for (size_t m = 0; m < makes.size(); ++m) {
    const Time next = m + 1 < makes.size() ? makes[m + 1] : End() + 1;
    while (use < uses.size() && uses[use] < makes[m]) ++use;
    size_t last = use;
    while (last < uses.size() && uses[last] < next) ++last;
    if (last > use) held->output.push_back({makes[m], uses[last - 1]});
    use = last;
    if (backward != kNoIndex && makes[m] < TimeOf(backward)) held->saving = makes[m];
  }
  if (held->saving >= 0) held->extras.push_back({held->saving, TimeOf(backward)});
}

// Of what is held so long and was not before, and the other way round. Both rise.
void OrderTrials::AddSteps(const std::vector<Life>& before, const std::vector<Life>& after,
                           int64_t bytes) {
  const auto add = [this](const Life& life, int64_t more) {
    steps_.push_back({life.from, more});
    steps_.push_back({life.to, -more});
  };
  auto had = before.begin();
  auto has = after.begin();
  while (had != before.end() || has != after.end()) {
    if (had == before.end() || (has != after.end() && has->from < had->from)) {
      add(*has++, bytes);
    } else if (has == after.end() || had->from < has->from) {
      add(*had++, -bytes);
    } else {
      if (has->to != had->to) {
        steps_.push_back({std::min(had->to, has->to), has->to > had->to ? bytes : -bytes});
        steps_.push_back({std::max(had->to, has->to), has->to > had->to ? -bytes : bytes});
      }
      ++had;
      ++has;
    }
  }
}

int64_t OrderTrials::OwnBytes(int v, bool saves) const {
  const OpGraph::Costs& costs = graph_.costs(v);
  return costs.output + (saves ? costs.extra + costs.saving_overhead : costs.unsaved_overhead);
}

void OrderTrials::NoteChanges(int v) {
  FindLives(v, false, &before_);
  FindLives(v, true, &after_);
  AddSteps(before_.output, after_.output, graph_.costs(v).output);
  saving_[Index(v)] = after_.saving;
  if (before_.saving == after_.saving) return;
  AddSteps(before_.extras, after_.extras, graph_.costs(v).extra);
  for (const Time time : {before_.saving, after_.saving}) {
    if (time < 0 || time % kStride != 0) continue;
    const int index = LaterThan(time) - 1;
    if (states_[Index(index)] == State::kRuns && StateOf(index) == State::kRuns) {
      owns_.push_back({index, OwnBytes(v, time == after_.saving)});
    }
  }
}

int64_t OrderTrials::BytesAt(Time time) const {
  const auto later = std::lower_bound(steps_.begin(), steps_.end(), time,
                                      [](const Step& step, Time t) { return step.after < t; });
  return later == steps_.begin() ? 0 : (later - 1)->bytes;
}

// Calls it with the computes [begin, end) that so many bytes more are held at.
template <class Visit>
void OrderTrials::ForStretches(const Visit& visit) const {
  for (size_t s = 0; s + 1 < steps_.size(); ++s) {
    const size_t begin = Index(LaterThan(steps_[s].after));
    const size_t end = std::min(Index(LaterThan(steps_[s + 1].after)), over_.size());
    if (steps_[s].bytes != 0 && begin < end) visit(begin, end, steps_[s].bytes);
  }
}

OrderCost OrderTrials::Sum() {
  steps_.clear();
  owns_.clear();
  for (const int v : touched_) NoteChanges(v);
  std::sort(steps_.begin(), steps_.end(),
            [](const Step& a, const Step& b) { return a.after < b.after; });
  looked_at_ += 2 * static_cast<int64_t>(steps_.size());
  for (size_t s = 1; s < steps_.size(); ++s) steps_[s].bytes += steps_[s - 1].bytes;
  OrderCost cost = cost_;
  ForStretches([&](size_t begin, size_t end, int64_t more) {
    looked_at_ += static_cast<int64_t>(end - begin) / kComputesPerLook;
    for (size_t i = begin; i < end; ++i) {
      cost.overload += graph_.OverloadUnits(over_[i] + more) - graph_.OverloadUnits(over_[i]);
    }
  });
  for (const int index : changed_indices_) {
    const int v = order_[Index(index)].vertex;
    const bool ran = states_[Index(index)] == State::kRuns;
    const bool runs = StateOf(index) == State::kRuns;
    if (ran != runs) {
      owns_.push_back({index, OwnBytes(v, TimeOf(index) == saving_[Index(v)])});
      cost.forward_time += runs ? graph_.costs(v).forward_time : -graph_.costs(v).forward_time;
    }
  }
  for (const Changed& one : owns_) {
    const size_t i = Index(one.index);
    const int64_t bytes = BytesAt(TimeOf(one.index));
    if (StateOf(one.index) == State::kRuns) {
      cost.overload += graph_.OverloadUnits(held_[i] + bytes + one.own - target_);
    }
    cost.overload -= graph_.OverloadUnits(over_[i] + bytes);
  }
  for (const Inserted& one : inserted_) {
    if (!one.runs) continue;
    const int64_t own = OwnBytes(one.vertex, one.time == saving_[Index(one.vertex)]);
    const int64_t held = held_[Index(LaterThan(one.time))] + BytesAt(one.time);
    cost.overload += graph_.OverloadUnits(held + own - target_);
    cost.forward_time += graph_.costs(one.vertex).forward_time;
  }
  changed_cost_ = cost;
  return cost;
}

void OrderTrials::Keep() {
  ForStretches([this](size_t begin, size_t end, int64_t more) {
    for (size_t i = begin; i < end; ++i) {
      over_[i] += more;
      held_[i] += more;
    }
  });
  for (const Changed& one : owns_) {
    const size_t i = Index(one.index);
    over_[i] = StateOf(one.index) == State::kRuns ? held_[i] + one.own - target_ : kFarBelow;
  }
  for (const int index : changed_indices_) states_[Index(index)] = StateOf(index);
  cost_ = changed_cost_;
}

}  // namespace stowage
