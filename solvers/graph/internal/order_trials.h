// What a small change of a compute order costs, without a replay of all of it. Internal to solvers/graph.
#ifndef STOWAGE_SOLVERS_GRAPH_INTERNAL_ORDER_TRIALS_H_
#define STOWAGE_SOLVERS_GRAPH_INTERNAL_ORDER_TRIALS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "solvers/graph/internal/compute_order.h"

namespace stowage {

// Looks at the tensors whose lives a change begins or ends elsewhere, and at the computes meanwhile. The answers are
// those of OrderEvaluator::Evaluate for the changed order, but for the peak, which is 0. Not thread-safe.
class OrderTrials {
 public:
  // The graph outlives it.
  explicit OrderTrials(const OpGraph& graph);

  // The order of the profile, which has no forward that nobody uses, with its cost at the target. False where it cannot
  // tell of changes: an op stops early, or a forward leaves the extras of one before it. O(computes + edges).
  bool Start(const OrderProfile& profile, const OrderCost& cost, int64_t target);

  // With the forward at `index`, one that Start was told of, taken out.
  OrderCost Without(int index);
  // With forwards of these vertices, each once, put in before the compute at `before`. With `instead_of_next` the next
  // forward of each of them, at `before` or later, is left out.
  OrderCost With(int before, absl::Span<const int> vertices, bool instead_of_next);
  // With the forward at `index` at the place before the compute at `before`, which is another one.
  OrderCost Moved(int index, int before);

  // The last change, a Without, is the order's from now on. Indices stay.
  void Keep();

  // What was looked at so far, in the time that OrderEvaluator takes for so many computes and edges.
  int64_t work() const { return started_ + trials_ * kWorkOfTrial + looked_at_ / 2; }

 private:
  // Computes of Start are at multiples of kStride, those put in between.
  using Time = int64_t;
  static constexpr Time kStride = Time{1} << 20;
  // So many computes of a stretch are looked at in the time of one event.
  static constexpr int64_t kComputesPerLook = 8;
  static constexpr int64_t kWorkOfTrial = 32;
  static Time TimeOf(int index) { return (Time{index} + 1) * kStride; }
  // The first index at a later time; indices up to `time` are below LaterThan(time).
  static int LaterThan(Time time) { return static_cast<int>(time / kStride); }
  Time End() const { return TimeOf(static_cast<int>(order_.size())); }

  enum class State : char { kOut, kDead, kRuns };

  struct Inserted {
    int vertex;
    Time time;
    bool runs;
  };
  // A forward of a vertex, to be looked at again; from the end to the start.
  struct Make {
    Time time;
    int vertex;
    int inserted;  // which one; -1: at its index
    bool operator<(const Make& other) const { return time < other.time; }
  };
  // A tensor is held after `from`, up to `to`.
  struct Life {
    Time from, to;
  };
  struct Held {
    std::vector<Life> output, extras;
    Time saving;  // the forward that makes the extras
  };
  // So many bytes more are held after the time; in the end, more than without the change.
  struct Step {
    Time after;
    int64_t bytes;
  };
  struct Changed {
    int index;
    int64_t own;  // what a forward takes beyond what is held
  };

  absl::Span<const int> Makes(int v) const { return Of(makes_, first_make_, v); }
  absl::Span<const int> Uses(int v) const { return Of(uses_, first_use_, v); }
  static absl::Span<const int> Of(const std::vector<int>& all, const std::vector<int>& first,
                                  int v) {
    const auto begin = static_cast<size_t>(first[static_cast<size_t>(v)]);
    return {all.data() + begin, static_cast<size_t>(first[static_cast<size_t>(v) + 1]) - begin};
  }
  template <class Use>
  void ForUses(const Compute& c, const Use& use) const;
  // The forward of `v` that was put in; null if none was.
  const Inserted* InsertedOf(int v) const;

  State StateOf(int index) const;
  void Set(int index, State state);
  void Begin();
  void TakeOut(int index);
  void Insert(int vertex, Time time);
  void Touch(int v);
  // The forwards that may be of another use when what uses `v` at the time changes, or what makes it then.
  void LookBefore(int v, Time time);
  void LookAtInputs(int v, Time time);
  bool UsedBetween(int v, Time from, Time to) const;
  // The first forward of `v` later than `time` that runs; beyond the end if there is none.
  Time NextMake(int v, Time time) const;
  bool IsFirst(int v, Time time) const;
  bool Runs(const Make& make) const;
  void Settle();
  // With the change, or without.
  void FindLives(int v, bool changed, Held* held);
  void AddSteps(const std::vector<Life>& before, const std::vector<Life>& after, int64_t bytes);
  void NoteChanges(int v);
  int64_t OwnBytes(int v, bool saves) const;
  int64_t BytesAt(Time time) const;
  template <class Visit>
  void ForStretches(const Visit& visit) const;
  OrderCost Sum();

  const OpGraph& graph_;
  ComputeOrder order_;
  int64_t target_ = 0;
  OrderCost cost_, changed_cost_;
  std::vector<int> makes_, first_make_, uses_, first_use_;  // indices by vertex, rising
  std::vector<int> backward_;                               // by vertex; -1 if none
  std::vector<State> states_;                               // by compute
  std::vector<int64_t> held_;                               // before each compute, and at the end
  std::vector<int64_t> over_;  // by compute: over the target; far below it if it does not run

  // Of a change.
  int64_t change_ = 0;
  std::vector<int64_t> changed_, touched_in_;  // by compute, by vertex: the last change
  std::vector<int64_t> inserted_in_;           // by vertex
  std::vector<int> inserted_of_;
  std::vector<State> changed_states_;
  std::vector<int> changed_indices_, touched_;
  std::vector<Inserted> inserted_;
  std::vector<Make> open_;  // a heap
  std::vector<Step> steps_;
  std::vector<Changed> owns_;
  Held before_, after_;
  std::vector<Time> saving_;  // by touched vertex: the forward that makes the extras
  std::vector<Time> make_times_, use_times_;
  std::vector<int> scratch_, more_scratch_;
  int64_t started_ = 0;  // computes and edges
  int64_t trials_ = 0;
  mutable int64_t looked_at_ = 0;  // events
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_INTERNAL_ORDER_TRIALS_H_
