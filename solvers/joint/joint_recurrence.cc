#include "solvers/joint/joint_recurrence.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "solvers/joint/joint_state.h"
#include "solvers/joint/link_costs.h"
#include "solvers/joint/suffix_bound.h"

namespace stowage {
namespace {

double Positive(double value) { return std::max(value, 0.0); }

// Bytes of all that may ever be on the host at once.
int64_t MostAway(const Chain& chain) {
  int64_t sum = chain.activation(0).value();
  for (int l = 1; l <= chain.length(); ++l) sum += chain.stage(l).saved.value();
  return sum;
}

StateGrid GridOf(const Chain& chain, const LinkCosts& link, Bytes memory, double cells) {
  StateGrid grid;
  const double bytes = std::max(static_cast<double>(memory.value()), 1.0) / cells;
  grid.kept = bytes;
  grid.backlog = std::max(bytes * std::max(link.out.per_byte, link.in.per_byte), 1e-3);
  grid.host_limited = link.host_memory < MostAway(chain);
  grid.host = std::max(static_cast<double>(link.host_memory) / cells, 1.0);
  return grid;
}

// How the bytes of a search are divided among what has been decided and what has not.
struct Division {
  size_t states = 0;  // at one stage, of each kind of input; 0 if too few for a search
  int64_t pools = 0;  // bytes of all of them

  Division(int stages, int longest, const JointLimits& limits) {
    constexpr size_t kFewestStates = 8;
    constexpr int64_t kLeastPools = 8;  // times the least room
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
              Bytes memory, const JointLimits& limits, const SolveOptions& options)
      : chain_(chain),
        link_(transfers),
        costs_(costs),
        memory_(memory.value()),
        limits_(limits),
        division_(chain.length() + 1, costs.longest(), limits),
        grid_(GridOf(chain, link_, memory, limits.cells)),
        bound_(chain, link_, memory_),
        poll_(options.stop),
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
    if (held + run.need > memory_ || state.extra + run.time > limits_.most_extra) return false;
    Take(i, j, false, run, run.time, state, input, next);
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
    const SegmentCosts::Options options = costs_.OptionsOf(i, j, saved);
    double excess = std::numeric_limits<double>::infinity();
    for (const SegmentOption* option = options.begin; option != options.end; ++option) {
      if (held + option->need > memory_) continue;
      if (option->excess >= excess) break;
      const double wait = Positive(state.backlog_b + link_.in.per_byte * over + option->rush);
      if (option->excess + wait < excess) {
        excess = option->excess + wait;
        next.room = Bytes(option->room);
      }
      if (wait == 0) break;
    }
    next.extra += excess;
    if (next.extra > limits_.most_extra) return;
    Leave(state, input, wait_f + run.time, again + run.backward_time + excess, j + 1, saved, next);
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
    next.input_away = true;
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
      outline.push_back({at->first, next - 1, saved, at->room, at->input_away});
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
                                                     const SolveOptions& options) {
  if (Division(chain.length() + 1, costs.longest(), limits).states == 0) {
    return std::vector<Outline>();
  }
  return StateSearch(chain, transfers, costs, memory, limits, options).Propose();
}

}  // namespace stowage
