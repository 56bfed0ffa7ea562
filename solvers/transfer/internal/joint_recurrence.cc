#include "solvers/transfer/internal/joint_recurrence.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

// What the stages before stage i leave to it and to those after it.
struct JointState {
  int64_t kept = 0;      // bytes of theirs that stay on the device, the input of i not counted
  int64_t host = 0;      // bytes of theirs that go to the host
  double backlog_f = 0;  // ns that the link needs for offloads not ended when forward i starts
  double backlog_b = 0;  // the same of prefetches due before backward i-1, in reversed time
  double extra = 0;      // ns beyond one forward and one backward per stage: recomputed, or waited
  double bound = 0;      // ns: the extra time of the whole chain is no less

  // The last part begins at stage `first`, where state `parent` was.
  int32_t parent = -1;
  int32_t first = 0;
  bool parent_saved = false;  // the kind of its input
  bool input_on_host = false;
  Bytes memory;  // of a segment's backward
};

// Waiting turns extra time into less backlog, one for one, in each half.
inline bool Dominates(const JointState& a, const JointState& b, bool host_limited) {
  if (a.kept > b.kept || (host_limited && a.host > b.host)) return false;
  const double behind_f = a.backlog_f > b.backlog_f ? a.backlog_f - b.backlog_f : 0.0;
  const double behind_b = a.backlog_b > b.backlog_b ? a.backlog_b - b.backlog_b : 0.0;
  return a.extra + behind_f + behind_b <= b.extra;
}

// How finely states are told apart: the sides of a cell.
struct StateGrid {
  double kept = 1;  // bytes
  double host = 1;
  double backlog = 1;  // ns
  bool host_limited = false;
};

double Weight(const JointState& s) { return s.extra + s.backlog_f + s.backlog_b; }

// Of equals the first stays.
bool Better(const JointState& a, const JointState& b) {
  return std::make_tuple(Weight(a), a.kept, a.host) < std::make_tuple(Weight(b), b.kept, b.host);
}

// The least bound first; the rest tells all states of a pool apart.
bool ComesBefore(const JointState& a, const JointState& b) {
  const auto key = [](const JointState& s) {
    return std::make_tuple(s.bound, Weight(s), s.kept, s.host, s.first, s.parent_saved, s.parent,
                           s.input_on_host);
  };
  return key(a) < key(b);
}

// States of one stage and one kind of input, in no more memory than it is given. Not thread-safe.
class StatePool {
 public:
  // Fills in the bound of a state and says whether it may stay.
  using Bound = absl::FunctionRef<bool(JointState*)>;

  explicit StatePool(const StateGrid& grid) : grid_(grid) {}

  // Of the states in one cell the one with the least extra time and backlogs stays. False if there
  // is no capacity for one more: nothing has changed.
  bool Offer(const JointState& state) {
    const uint64_t cell = CellOf(state);
    if (states_.size() == capacity_) {
      const auto found = cells_.find(cell);
      if (found == cells_.end()) return false;
      if (Better(state, states_[found->second])) states_[found->second] = state;
      return true;
    }
    const auto [at, added] = cells_.try_emplace(cell, static_cast<uint32_t>(states_.size()));
    if (added) {
      states_.push_back(state);
    } else if (Better(state, states_[at->second])) {
      states_[at->second] = state;
    }
    return true;
  }

  // What the capacity for states takes, and what it would take once grown.
  int64_t bytes() const { return BytesFor(capacity_); }
  int64_t grown_bytes() const { return BytesFor(GrownCapacity()); }
  static int64_t least_bytes() { return BytesFor(kLeastCapacity); }

  void Grow() {
    capacity_ = GrownCapacity();
    states_.reserve(capacity_);
    cells_.reserve(capacity_);
  }

  // Halves the capacity, where there is more than the least. The states that may not stay go; of the
  // others, if need be, those with the largest bounds.
  void Thin(Bound bound) {
    if (capacity_ <= kLeastCapacity) return;
    capacity_ /= 2;
    cells_ = {};
    states_.erase(std::remove_if(states_.begin(), states_.end(),
                                 [&](JointState& state) { return !bound(&state); }),
                  states_.end());
    if (states_.size() > capacity_) {
      const auto end = states_.begin() + static_cast<std::ptrdiff_t>(capacity_);
      std::nth_element(states_.begin(), end, states_.end(), ComesBefore);
      states_.erase(end, states_.end());
    }
    std::vector<JointState> states;
    states.reserve(capacity_);
    states.assign(states_.begin(), states_.end());
    states_ = std::move(states);
    cells_.reserve(capacity_);
    for (size_t s = 0; s < states_.size(); ++s) {
      cells_.emplace(CellOf(states_[s]), static_cast<uint32_t>(s));
    }
  }

  // Empties the pool, its capacity included: at most `most` states that none other dominates, the least
  // bound first. CANCELLED, DEADLINE_EXCEEDED.
  absl::StatusOr<std::vector<JointState>> Take(size_t most, Bound bound, StopPoll* poll) {
    std::vector<JointState> states = std::move(states_);
    states_ = {};
    cells_ = {};
    capacity_ = 0;
    states.erase(std::remove_if(states.begin(), states.end(),
                                [&](JointState& state) { return !bound(&state); }),
                 states.end());
    absl::Status status = poll->Spend(static_cast<int64_t>(states.size()) * 64);
    if (!status.ok()) return status;
    std::sort(states.begin(), states.end(), ComesBefore);
    std::vector<JointState> kept;
    kept.reserve(std::min(most, states.size()));
    // What dominated once does so again more often than not: it is asked first.
    std::vector<uint32_t> order;
    order.reserve(std::min(most, states.size()));
    for (const JointState& state : states) {
      if (kept.size() == most) break;
      const auto by = std::find_if(order.begin(), order.end(), [&](uint32_t other) {
        return Dominates(kept[other], state, grid_.host_limited);
      });
      status = poll->Spend(by - order.begin() + 1);
      if (!status.ok()) return status;
      if (by != order.end()) {
        std::rotate(order.begin(), by, by + 1);
        continue;
      }
      order.push_back(static_cast<uint32_t>(kept.size()));
      kept.push_back(state);
    }
    return kept;
  }

  size_t size() const { return states_.size(); }

 private:
  static constexpr size_t kLeastCapacity = 16;

  // A state, and at most two places of 17 bytes each in the table of cells.
  static int64_t BytesFor(size_t capacity) {
    return static_cast<int64_t>(capacity * (sizeof(JointState) + 40));
  }
  size_t GrownCapacity() const { return capacity_ == 0 ? kLeastCapacity : 2 * capacity_; }

  uint64_t CellOf(const JointState& state) const {
    const auto side = [](double value, double unit) {
      constexpr double kMost = 65535;
      return static_cast<uint64_t>(std::min(value / unit, kMost));
    };
    const uint64_t host =
        grid_.host_limited ? side(static_cast<double>(state.host), grid_.host) : uint64_t{0};
    return side(static_cast<double>(state.kept), grid_.kept) << 48 | host << 32 |
           side(state.backlog_f, grid_.backlog) << 16 | side(state.backlog_b, grid_.backlog);
  }

  size_t capacity_ = 0;  // for so many states
  StateGrid grid_;
  absl::flat_hash_map<uint64_t, uint32_t> cells_;  // index in states_
  std::vector<JointState> states_;
};

// A link to host memory in doubles, for searches.

// Of one direction, ns.
struct CopyRate {
  double per_byte = 0;
  double latency = 0;

  explicit CopyRate(const CopyCost& cost)
      : per_byte(1e9 / static_cast<double>(cost.bytes_per_second)),
        latency(static_cast<double>(cost.latency.value())) {}

  double Time(int64_t bytes) const { return latency + per_byte * static_cast<double>(bytes); }
};

struct LinkCosts {
  CopyRate out;
  CopyRate in;
  int64_t host_memory;

  explicit LinkCosts(const TransferModel& transfers)
      : out(transfers.to_host),
        in(transfers.to_device),
        host_memory(transfers.host_memory.value()) {}
};

// What the last stages of a chain cost at least beyond their ideal time.
//
// The time steps and kept stages of solvers/schedule/lower_bound.h, for stages i..L+1 beside what is held of
// those before: at the time step that needs most, stages that are neither recomputed nor on the host are held.
// What is recomputed costs a forward; what is on the host takes the link there and back, beside the time
// that these stages take. So of the bytes beyond the memory any share y is recomputed, and the time is at
// least the larger of both.
class SuffixBound {
  // Stages recomputed so far, those that cost least per byte first.
  struct Recomputed {
    double bytes;
    double time;
  };

 public:
  // O(L^2 log L) time, O(L^2) memory.
  SuffixBound(const Chain& chain, const LinkCosts& link, int64_t memory)
      : memory_(memory),
        per_byte_(link.out.per_byte + link.in.per_byte),
        suffixes_(static_cast<size_t>(chain.length()) + 3) {
    for (int i = chain.length() + 1; i >= 1; --i) {
      Suffix& suffix = suffixes_[static_cast<size_t>(i)];
      const Stage& stage = chain.stage(i);
      suffix.ideal = suffixes_[static_cast<size_t>(i) + 1].ideal +
                     static_cast<double>((stage.forward_time + stage.backward_time).value());
      Fill(chain, i, &suffix);
    }
  }

  // The most that one for so many stages, the loss included, takes, but for O(L).
  static int64_t SizeBytes(int64_t stages) {
    return stages * (stages + 1) / 2 * static_cast<int64_t>(sizeof(Recomputed));
  }

  // Of stages i..L+1, in ns: beside `held` bytes of the stages before, with copies of `backlog` ns
  // still to be made, and `host` bytes that may still be taken there.
  double Least(int i, int64_t held, double backlog, int64_t host) const {
    const Suffix& suffix = suffixes_[static_cast<size_t>(i)];
    const double overflow = static_cast<double>(held + suffix.need - memory_);
    const double queue = backlog - suffix.ideal;
    if (overflow <= 0) return std::max(0.0, queue);
    const auto link = [&](double recomputed) {
      return queue + (overflow - recomputed) * per_byte_;
    };
    const std::vector<Recomputed>& points = suffix.recomputed;
    // The first point at which recomputing takes no less than the link, and leaves the host no more
    // than it takes.
    const double least = overflow - static_cast<double>(host);
    const auto at =
        std::partition_point(points.begin(), points.end(), [&](const Recomputed& point) {
          return point.time < link(point.bytes) || point.bytes < least;
        });
    if (at == points.begin()) return std::max(0.0, link(0));
    const Recomputed& before = *(at - 1);
    if (at == points.end()) return std::max(0.0, std::max(before.time, link(before.bytes)));
    // Both are linear in between.
    const double per_byte = (at->time - before.time) / (at->bytes - before.bytes);
    double bytes = before.bytes + (link(before.bytes) - before.time) / (per_byte + per_byte_);
    bytes = std::clamp(std::max(bytes, least), before.bytes, at->bytes);
    bytes = std::min(bytes, overflow);
    return std::max({0.0, before.time + (bytes - before.bytes) * per_byte, link(bytes)});
  }

 private:
  struct Suffix {
    int64_t need = 0;                    // bytes at the time step that needs most
    double ideal = 0;                    // time of the stages
    std::vector<Recomputed> recomputed;  // from nothing on
  };

  void Fill(const Chain& chain, int i, Suffix* suffix) const {
    Bytes before;
    int peak = i;
    for (int l = i; l <= chain.length() + 1; ++l) {
      const Stage& stage = chain.stage(l);
      Bytes need =
          before + stage.saved +
          std::max(stage.forward_saving_overhead, stage.output_gradient + stage.backward_overhead);
      if (stage.stops() && stage.recomputable()) {
        need = std::min(need, before + stage.stopped_saved() +
                                  std::max(stage.stopped_overhead(),
                                           stage.output_gradient + stage.backward_overhead));
      }
      if (need.value() > suffix->need) {
        suffix->need = need.value();
        peak = l;
      }
      before += stage.saved;
    }
    std::vector<Recomputed>& points = suffix->recomputed;
    points.reserve(static_cast<size_t>(peak - i) + 1);
    for (int l = i; l < peak; ++l) {
      const Stage& stage = chain.stage(l);
      if (!stage.recomputable() || stage.saved == Bytes(0)) continue;
      points.push_back({static_cast<double>(stage.saved.value()),
                        static_cast<double>(stage.stopped_time().value())});
    }
    std::stable_sort(points.begin(), points.end(), [](const Recomputed& a, const Recomputed& b) {
      return a.time * b.bytes < b.time * a.bytes;
    });
    points.insert(points.begin(), {0, 0});
    for (size_t p = 1; p < points.size(); ++p) {
      points[p].bytes += points[p - 1].bytes;
      points[p].time += points[p - 1].time;
    }
  }

  int64_t memory_;
  double per_byte_;  // out and in
  std::vector<Suffix> suffixes_;
};

double Positive(double value) { return std::max(value, 0.0); }

// Bytes of all that may ever be on the host at once.
int64_t MostOnHost(const Chain& chain) {
  int64_t sum = chain.activation(0).value();
  for (int l = 1; l <= chain.length(); ++l) sum += chain.stage(l).saved.value();
  return sum;
}

StateGrid GridOf(const Chain& chain, const LinkCosts& link, Bytes memory, double cells) {
  StateGrid grid;
  const double bytes = std::max(static_cast<double>(memory.value()), 1.0) / cells;
  grid.kept = bytes;
  grid.backlog = std::max(bytes * std::max(link.out.per_byte, link.in.per_byte), 1e-3);
  grid.host_limited = link.host_memory < MostOnHost(chain);
  grid.host = std::max(static_cast<double>(link.host_memory) / cells, 1.0);
  return grid;
}

// How the bytes of a search are divided among what has been decided and what has not.
struct Division {
  size_t states = 0;  // at one stage, of each kind of input; 0 if too few for a search
  int64_t pools = 0;  // bytes of all of them

  Division(int stages, int longest, const JointLimits& limits) {
    constexpr size_t kFewestStates = 8;
    constexpr int64_t kLeastPools = 8;  // times the least capacity
    const int64_t kinds = 2 * int64_t{stages};
    const int64_t left = limits.bytes - SuffixBound::SizeBytes(stages);
    // While a pool is emptied, what is taken has an index, too.
    const int64_t state_bytes = kinds * static_cast<int64_t>(sizeof(JointState)) +
                                static_cast<int64_t>(sizeof(JointState) + sizeof(uint32_t));
    const int64_t afforded = std::max<int64_t>(left / 2 / state_bytes, 0);
    const size_t most = std::min(limits.states, static_cast<size_t>(afforded));
    pools = left - static_cast<int64_t>(most) * state_bytes;
    const int64_t open = std::min(kinds, 2 * (int64_t{longest} + 2));
    if (most >= kFewestStates && pools >= kLeastPools * open * StatePool::least_bytes()) {
      states = most;
    }
  }
};

// Forwards of stages that run and save nothing, beside what is held.
struct Run {
  int64_t need = 0;  // most bytes
  double rush = 0;  // ns: the most, over the stages, of the link's time for what they need less the
                    // time that has passed when they start
  double time = 0;  // of the forwards
  double backward_time = 0;

  void Add(int64_t stage_need, double per_byte) {
    const double stage_rush = per_byte * static_cast<double>(stage_need) - time;
    rush = need == 0 ? stage_rush : std::max(rush, stage_rush);
    need = std::max(need, stage_need);
  }
};

class StateSearch {
 public:
  StateSearch(const Chain& chain, const TransferModel& transfers, const SegmentCosts& costs,
              Bytes memory, const JointLimits& limits, const SolveContext& context)
      : chain_(chain),
        link_(transfers),
        costs_(costs),
        memory_(memory.value()),
        limits_(limits),
        division_(chain.length() + 1, costs.longest(), limits),
        grid_(GridOf(chain, link_, memory, limits.cells)),
        bound_(chain, link_, memory_),
        poll_(context.stop()),
        seed_gradient_(chain.gradient(chain.length() + 1).value()) {
    const size_t stages = static_cast<size_t>(chain.length()) + 3;
    pools_.resize(stages, {StatePool(grid_), StatePool(grid_)});
    states_.resize(stages);
  }

  absl::StatusOr<std::vector<Outline>> Propose() {
    Offer(1, false, JointState());
    const int last = chain_.length() + 1;
    for (int i = 1; i <= last; ++i) {
      FillRuns(i);
      for (const bool saved : {false, true}) {
        if (saved && i == 1) continue;  // no stage saves a^0
        absl::Status status = Decide(i, saved);
        if (!status.ok()) return status;
      }
    }
    return Finish(last + 1);
  }

 private:
  int64_t Input(int i, bool saved) const {
    return saved ? chain_.stage(i - 1).saved.value() : chain_.activation(i - 1).value();
  }

  bool FillBound(int i, int64_t input, JointState* state) const {
    state->bound =
        state->extra + bound_.Least(i, state->kept + input, state->backlog_f + state->backlog_b,
                                    link_.host_memory - state->host);
    return state->bound <= limits_.most_extra;
  }

  absl::Status Decide(int i, bool saved) {
    const int64_t input = Input(i, saved);
    std::vector<JointState>& states = states_[static_cast<size_t>(i)][saved ? 1 : 0];
    absl::StatusOr<std::vector<JointState>> taken = TakeFrom(i, saved, division_.states);
    if (!taken.ok()) return taken.status();
    states = *std::move(taken);
    for (size_t s = 0; s < states.size(); ++s) {
      absl::Status status =
          poll_.Spend(static_cast<int64_t>(runs_.size() + 1) * 128 + std::exchange(thinned_, 0));
      if (!status.ok()) return status;
      JointState next;
      next.parent = static_cast<int32_t>(s);
      next.first = i;
      next.parent_saved = saved;
      Save(i, states[s], input, saved, next);
      for (size_t k = 0; k < runs_.size(); ++k) {
        if (!RunTwice(i, i + static_cast<int>(k), runs_[k], states[s], input, next)) break;
      }
    }
    return absl::OkStatus();
  }

  int64_t PlainNeed(int i, int l) const {
    const Stage& stage = chain_.stage(l);
    return (stage.output + stage.forward_overhead).value() + seed_gradient_ +
           (l > i ? chain_.activation(l - 1).value() : 0);
  }
  int64_t SavingNeed(int i, int l) const {
    const Stage& stage = chain_.stage(l);
    return (stage.saved + stage.forward_saving_overhead).value() + seed_gradient_ +
           (l > i ? chain_.activation(l - 1).value() : 0);
  }

  // What stages i..j that run twice take, for each j.
  void FillRuns(int i) {
    runs_.clear();
    Run run;
    for (int j = i; costs_.MayRunTwice(i, j); ++j) {
      run.Add(PlainNeed(i, j), link_.out.per_byte);
      run.time += static_cast<double>(chain_.stage(j).forward_time.value());
      run.backward_time += static_cast<double>(chain_.stage(j).backward_time.value());
      runs_.push_back(run);
    }
  }

  void Save(int i, const JointState& state, int64_t input, bool input_saved, JointState next) {
    const Stage& stage = chain_.stage(i);
    const int64_t saved = stage.saved.value();
    const int64_t forward_need = SavingNeed(i, i);
    const int64_t backward_need =
        std::max(saved + (stage.output_gradient + stage.backward_overhead).value(),
                 chain_.gradient(i - 1).value() - (input_saved ? 0 : input));
    const int64_t over_f = state.kept + input + forward_need - memory_;
    const int64_t over_b = state.kept + input + backward_need - memory_;
    if (over_f > 0 || over_b > 0) return;
    const double wait_f =
        Positive(link_.out.per_byte * static_cast<double>(over_f) + state.backlog_f);
    const double wait_b =
        Positive(link_.in.per_byte * static_cast<double>(over_b) + state.backlog_b);
    next.extra = state.extra + wait_f + wait_b;
    Leave(state, input, wait_f + static_cast<double>(stage.forward_time.value()),
          wait_b + static_cast<double>(stage.backward_time.value()), i + 1, true, next);
  }

  // Stages i..j run twice; and the same with stage j+1 saved. Whether longer ones may fit.
  bool RunTwice(int i, int j, const Run& run, const JointState& state, int64_t input,
                const JointState& next) {
    const int64_t held = state.kept + input;
    const auto again = static_cast<double>(costs_.RecomputeTime(i, j));
    if (held + run.need > memory_ || state.extra + again > limits_.most_extra) return false;
    Take(i, j, false, run, again, state, input, next);
    if (j >= chain_.length()) return true;
    Run saving = run;
    const Stage& stage = chain_.stage(j + 1);
    saving.Add(SavingNeed(i, j + 1), link_.out.per_byte);
    saving.time += static_cast<double>(stage.forward_time.value());
    saving.backward_time += static_cast<double>(stage.backward_time.value());
    if (held + saving.need <= memory_) Take(i, j + 1, true, saving, run.time, state, input, next);
    return true;
  }

  // `again` is the time of what runs twice.
  void Take(int i, int j, bool saved, const Run& run, double again, const JointState& state,
            int64_t input, JointState next) {
    const int64_t held = state.kept + input;
    const double over = static_cast<double>(held - memory_);
    const double wait_f = Positive(state.backlog_f + link_.out.per_byte * over + run.rush);
    next.extra = state.extra + wait_f + again;
    if (next.extra > limits_.most_extra) return;
    const SegmentCosts::Options context = costs_.OptionsOf(i, j, saved);
    double overhead = std::numeric_limits<double>::infinity();
    for (const SegmentOption* option = context.begin; option != context.end; ++option) {
      if (held + option->need > memory_) continue;
      if (option->overhead >= overhead) break;
      const double wait = Positive(state.backlog_b + link_.in.per_byte * over + option->rush);
      if (option->overhead + wait < overhead) {
        overhead = option->overhead + wait;
        next.memory = Bytes(option->memory);
      }
      if (wait == 0) break;
    }
    next.extra += overhead;
    if (next.extra > limits_.most_extra) return;
    Leave(state, input, wait_f + run.time, again + run.backward_time + overhead, j + 1, saved,
          next);
  }

  // Of the input that stays, and of the one that leaves, while the part takes its times.
  void Leave(const JointState& state, int64_t input, double pass_f, double pass_b, int to,
             bool saved, JointState next) {
    next.kept = state.kept + input;
    next.host = state.host;
    next.backlog_f = Positive(state.backlog_f - pass_f);
    next.backlog_b = Positive(state.backlog_b - pass_b);
    Offer(to, saved, next);
    if (input == 0 || state.host + input > link_.host_memory) return;
    next.input_on_host = true;
    next.kept = state.kept;
    next.host = state.host + input;
    next.backlog_f = Positive(state.backlog_f + link_.out.Time(input) - pass_f);
    next.backlog_b += link_.in.Time(input);
    Offer(to, saved, next);
  }

  StatePool& PoolOf(int i, bool saved) { return pools_[static_cast<size_t>(i)][saved ? 1 : 0]; }

  // To what the stages before `i` leave. Where the bytes are too few, all pools give up half of
  // theirs; then the state may be left out.
  void Offer(int i, bool saved, const JointState& state) {
    StatePool& pool = PoolOf(i, saved);
    if (pool.Offer(state)) return;
    if (pool_bytes_ + pool.grown_bytes() > division_.pools) ThinPools();
    if (pool.Offer(state) || pool_bytes_ + pool.grown_bytes() > division_.pools) return;
    pool_bytes_ -= pool.bytes();
    pool.Grow();
    pool_bytes_ += pool.bytes();
    pool.Offer(state);
  }

  void ThinPools() {
    constexpr int64_t kWorkPerState = 64;
    pool_bytes_ = 0;
    for (int i = 1; i <= chain_.length() + 2; ++i) {
      for (const bool saved : {false, true}) {
        StatePool& pool = PoolOf(i, saved);
        thinned_ += static_cast<int64_t>(pool.size()) * kWorkPerState;
        pool.Thin([&](JointState* state) { return FillBoundAt(i, saved, state); });
        pool_bytes_ += pool.bytes();
      }
    }
  }

  bool FillBoundAt(int i, bool saved, JointState* state) const {
    if (i <= chain_.length() + 1) return FillBound(i, Input(i, saved), state);
    state->bound = state->extra + state->backlog_f + state->backlog_b;
    return state->bound <= limits_.most_extra;
  }

  absl::StatusOr<std::vector<JointState>> TakeFrom(int i, bool saved, size_t most) {
    StatePool& pool = PoolOf(i, saved);
    pool_bytes_ -= pool.bytes();
    return pool.Take(
        most, [&](JointState* state) { return FillBoundAt(i, saved, state); }, &poll_);
  }

  absl::StatusOr<std::vector<Outline>> Finish(int end) {
    absl::StatusOr<std::vector<JointState>> states = TakeFrom(end, true, limits_.outlines);
    if (!states.ok()) return states.status();
    std::vector<Outline> outlines;
    for (const JointState& state : *states) outlines.push_back(Trace(state, end));
    return outlines;
  }

  Outline Trace(const JointState& state, int end) const {
    Outline outline;
    const JointState* at = &state;
    bool saved = true;
    for (int next = end; next > 1;) {
      outline.push_back({at->first, next - 1, saved, at->memory, at->input_on_host});
      next = at->first;
      saved = at->parent_saved;
      at = &states_[static_cast<size_t>(next)][saved ? 1 : 0][static_cast<size_t>(at->parent)];
    }
    std::reverse(outline.begin(), outline.end());
    return outline;
  }

  const Chain& chain_;
  const LinkCosts link_;
  const SegmentCosts& costs_;
  const int64_t memory_;
  const JointLimits limits_;
  const Division division_;
  const StateGrid grid_;
  const SuffixBound bound_;
  StopPoll poll_;
  const int64_t seed_gradient_;
  std::vector<Run> runs_;                        // from the stage that is decided on
  std::vector<std::array<StatePool, 2>> pools_;  // by stage, and whether its input is saved
  std::vector<std::array<std::vector<JointState>, 2>> states_;
  int64_t pool_bytes_ = 0;
  int64_t thinned_ = 0;  // work of thinning that the poll does not know of yet
};

}  // namespace

absl::StatusOr<std::vector<Outline>> ProposeOutlines(const Chain& chain,
                                                     const TransferModel& transfers,
                                                     const SegmentCosts& costs, Bytes memory,
                                                     const JointLimits& limits,
                                                     const SolveContext& context) {
  if (Division(chain.length() + 1, costs.longest(), limits).states == 0) {
    return std::vector<Outline>();
  }
  return StateSearch(chain, transfers, costs, memory, limits, context).Propose();
}

Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs) {
  Schedule schedule;
  for (const OutlinePart& part : outline) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    for (int l = part.first; l <= runs_to; ++l) {
      schedule.push_back(l == part.first ? ForwardNoSave(l) : ForwardNoSaveFreeInput(l));
    }
    if (!part.saved) continue;
    schedule.push_back(ForwardSave(part.last));
    if (part.first < part.last) {
      schedule.push_back(Discard(TensorKind::kActivation, part.last - 1));
    }
  }
  for (auto part = outline.rbegin(); part != outline.rend(); ++part) {
    if (part->saved && part->first == part->last) {
      schedule.push_back(Backward(part->last));
      continue;
    }
    const Schedule segment =
        costs.SegmentBackward(part->first, part->last, part->saved, part->memory);
    schedule.insert(schedule.end(), segment.begin(), segment.end());
  }
  return schedule;
}

double RecomputeTimeOf(const Outline& outline, const SegmentCosts& costs) {
  double time = 0;
  for (const OutlinePart& part : outline) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    if (runs_to < part.first) continue;
    time += static_cast<double>(part.saved ? costs.ForwardTime(part.first, runs_to)
                                           : costs.RecomputeTime(part.first, runs_to));
    const SegmentCosts::Options context = costs.OptionsOf(part.first, part.last, part.saved);
    for (const SegmentOption* option = context.begin; option != context.end; ++option) {
      if (option->memory == part.memory.value()) time += option->overhead;
    }
  }
  return time;
}

std::optional<Outline> OutlineOf(const Schedule& schedule, const SegmentCosts& costs) {
  Outline outline;
  const auto add = [&](OutlinePart part) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    if (runs_to >= part.first) {
      if (!costs.MayRunTwice(part.first, runs_to)) return false;
      const SegmentCosts::Options context = costs.OptionsOf(part.first, part.last, part.saved);
      if (context.begin == context.end) return false;
      part.memory = Bytes(context.begin->memory);
    }
    outline.push_back(part);
    return true;
  };
  int first = 0;  // of stages that have run and saved nothing; 0: none
  for (size_t k = 0; k < schedule.size() && schedule[k].op != Op::kBackward; ++k) {
    const Instruction& i = schedule[k];
    const int next = outline.empty() ? 1 : outline.back().last + 1;
    const bool runs = i.op == Op::kForwardNoSave || i.op == Op::kForwardNoSaveFreeInput;
    if (i.op == Op::kForwardSave) {
      // The input of a saved stage may be dropped: then it belongs to the stages before it.
      const bool drops = first > 0 && k + 1 < schedule.size() &&
                         schedule[k + 1] == Discard(TensorKind::kActivation, i.stage - 1);
      if (first > 0 && !drops && !add({first, i.stage - 1, false, Bytes(0), false})) return {};
      const int from = drops ? first : i.stage;
      if (from != (outline.empty() ? 1 : outline.back().last + 1)) return {};
      if (!add({from, i.stage, true, Bytes(0), false})) return {};
      first = 0;
    } else if (runs && first > 0 && i.op == Op::kForwardNoSave) {
      if (!add({first, i.stage - 1, false, Bytes(0), false})) return {};
      first = i.stage;
    } else if (runs) {
      if (first == 0 && i.stage != next) return {};
      if (first == 0) first = i.stage;
    } else if (i.op != Op::kDiscard) {
      return {};
    }
  }
  if (first > 0 || outline.empty() || outline.back().last != costs.last()) return {};
  return outline;
}

}  // namespace stowage
