// Schedules that need not be memory-persistent: their recurrence, its minimum memory, and the table of
// memory slots that answers every budget up to its slots (algorithms.md, "Beyond persistent
// schedules"). Internal to solvers/chain.
//
// Beside a^{s-1} and delta^t, the start of Theorem 1 (Beaumont et al. 2019), a subchain may hold all
// that is saved of stage t but its input, or a movable checkpoint. Every alternative has the form
//
//   value(x, m) = time + value(upper, m - held) + value(lower, m)    where m >= need.
//
// Values are times above the ideal: above one forward and one backward per stage, a forward that
// has run already not counted, and recomputes that stop early as Alternative says. a^{s-1} is outside
// m, everything else that is held is inside.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_TABLE_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "solvers/chain/persistent_space.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

// The backwards of stages first..last. first = 0: none.
struct Subchain {
  int first = 0;
  int last = 0;
  bool saved = false;  // saved `last` is held
  int movable = 0;     // c: a^{c-1} is held; 0: no movable checkpoint

  bool empty() const { return first == 0; }
};

// One way to begin a subchain: forwards, then the upper part beside `held`, then the lower part.
struct Alternative {
  int64_t need = 0;
  int64_t held = 0;

  // run_first..run_last run and save nothing; they will run again, which is the alternative's time.
  // Only the first keeps its input. Then `save` saves all.
  int run_first = 1, run_last = 0;
  bool drop_first_input = false;
  int save = 0;
  int drop_before = 0;  // then a^{drop_before} goes
  Subchain upper;
  int drop_between = 0;  // then a^{drop_between} goes
  Subchain lower;
  int backward = 0;  // in the end

  // Every subchain but one that holds saved `last` counts the recompute of its last stage as one that stops early; with a
  // movable checkpoint, that of stage c-1, too. Stages of which the lower part counts one more, and of which it
  // counts one less than the whole; 0: none.
  int stops = 0;
  int goes_on = 0, goes_on_too = 0;
};

// Calls visit(alternative) for every alternative of `x`, that which keeps most first, until it
// returns false. `moving`: whether checkpoints may move. O(L).
void ForEachAlternative(const PersistentSpace& space, bool moving, const Subchain& x,
                        absl::FunctionRef<bool(const Alternative&)> visit);

// Numbers the subchains of a chain from 0, and those alike that repeat the same stages: they have
// the same values.
class SubchainIndex {
 public:
  // O(L^2) time, O(L) memory.
  SubchainIndex(const PersistentSpace& space, bool moving);

  int64_t size() const { return size_; }
  // About how many alternatives all subchains have.
  double alternatives() const { return alternatives_; }

  int64_t operator()(const Subchain& x) const {
    const int64_t place = x.movable == 0 ? 0 : x.movable - x.first;
    return Begin(x.first, x.last) + 2 * place + (x.saved ? 1 : 0);
  }

  // Calls visit(subchain) once for every number, those that an alternative refers to before those
  // it is of, until it returns false.
  void ForEach(absl::FunctionRef<bool(const Subchain&)> visit) const;

 private:
  // The number of an interval's first subchain.
  int64_t Begin(int s, int t) const {
    MoveToDistinct(repeats_, &s, &t);
    return begin_[static_cast<size_t>(s)] + Shorter(t - s);
  }
  // How many subchains the intervals from one stage have that end less than `rest` stages later.
  int64_t Shorter(int64_t rest) const { return moving_ ? rest * (rest + 1) : 2 * rest; }

  bool VisitInterval(int s, int t, absl::FunctionRef<bool(const Subchain&)> visit) const;

  int last_;
  bool moving_;
  std::vector<StageRepeat> repeats_;
  int64_t size_ = 0;
  double alternatives_ = 0;
  std::vector<int64_t> begin_;  // by first stage: where all its intervals would begin
};

// The schedule of stages 1..last within `memory` (a^0 not included) made of choices: choose(x, m)
// returns an alternative of x that needs no more than m.
Schedule BuildSchedule(int last, int64_t memory,
                       absl::FunctionRef<Alternative(const Subchain&, int64_t)> choose);

// Between which memories a subchain is worth a row of a table: from the minimum that runs it to the
// one at which nothing of it runs again.
struct NonPersistentExtents {
  struct Extent {
    int64_t least = 0;
    int64_t all_kept = 0;
    int32_t choice = 0;  // the alternative that needs least
  };

  bool moving;
  SubchainIndex index;
  std::vector<Extent> extents;  // by index

  const Extent& operator[](const Subchain& x) const {
    return extents[static_cast<size_t>(index(x))];
  }
};

// O(L^3), with moving checkpoints O(L^4). CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED beyond
// the context's memory and for chains that it would take minutes for.
absl::StatusOr<NonPersistentExtents> ComputeExtents(const PersistentSpace& space, bool moving,
                                                    const SolveContext& context);

// The smallest budget of the whole chain, in the space's units, and the schedule that needs no more.
int64_t LeastBudgetOf(const PersistentSpace& space, const NonPersistentExtents& extents);
Schedule LeastSchedule(const PersistentSpace& space, const NonPersistentExtents& extents);

// One row of memory slots per subchain, over its extent. O(S L^3) time and O(S L^2) memory; with moving
// checkpoints O(S L^4) and O(S L^3); less where stages repeat. Values are in 32 bits where that is
// exact or the table large, and then in units of more than a nanosecond where need be; else in 64.
class NonPersistentTable {
 public:
  static constexpr int kMaxBytesPerValue = 8;

  // What a table for a chain of so many subchains takes beside its values, the extents in bytes that
  // a solve has for itself among it.
  static int64_t BytesBesideValues(int64_t subchains);

  virtual ~NonPersistentTable() = default;

  // `space` in slots; it must outlive the table. CANCELLED, DEADLINE_EXCEEDED; RESOURCE_EXHAUSTED
  // beyond the context's memory.
  static absl::StatusOr<std::unique_ptr<NonPersistentTable>> Compute(const PersistentSpace& space,
                                                                     bool moving, int64_t slots,
                                                                     const SolveContext& context);

  // Least time above the ideal of the whole chain within `memory` <= slots, a^0 included, in units
  // of time_unit(); kInfinity if nothing fits.
  virtual int64_t Overhead(int64_t memory) const = 0;
  // A schedule that attains it. Ties prefer keeping, then the earlier split.
  virtual Schedule Backtrack(int64_t memory) const = 0;

  int64_t time_unit() const { return time_unit_; }

 protected:
  explicit NonPersistentTable(int64_t time_unit) : time_unit_(time_unit) {}

 private:
  int64_t time_unit_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_TABLE_H_
