// A recurrence for schedules that need not be memory-persistent. Internal to solvers/chain.
//
// Beaumont et al. 2019, Theorem 1, knows one subproblem: a^{s-1} and delta^t are held, make
// delta^{s-1}. Two more things may be held here:
//
//   saved t   All of stage t is saved but its input a^{t-1} is gone; it comes back for backward t.
//             So a forward that saves all of a stage need not keep its input: what remains after
//             the stages behind it is a subproblem of this kind.
//   a^{c-1}   A movable checkpoint, s < c <= t. It serves the stages behind it, then it is dropped,
//             or moves on to a later stage for what remains (the paper's Figure 2).
//
// The first makes two subproblems of every interval, with O(L) alternatives each; the second one
// more for every c. Every alternative has the theorem's form,
//
//   value(x, m) = time + value(upper, m - held) + value(lower, m)    where m >= need,
//
// so that least memory, table and backtracking are each written once, over ForEachAlternative.
// Values are times above the ideal: above one forward and one backward per stage, a forward that
// has run already not counted. a^{s-1} is outside m, everything else that is held is inside.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_RECURRENCE_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_RECURRENCE_H_

#include <cstddef>
#include <cstdint>
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

// Between which memories a subchain of solvers/chain/internal/non_persistent_recurrence.h is worth a row of a table:
// from the least that runs it to the one at which nothing of it runs again. Internal to
// solvers/chain.

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
// options.table_limit and for chains that it would take minutes for.
absl::StatusOr<NonPersistentExtents> ComputeExtents(const PersistentSpace& space, bool moving,
                                                    const SolveOptions& options);

// The smallest budget of the whole chain, in the space's units, and the schedule that needs no more.
int64_t LeastBudgetOf(const PersistentSpace& space, const NonPersistentExtents& extents);
Schedule LeastSchedule(const PersistentSpace& space, const NonPersistentExtents& extents);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_NON_PERSISTENT_RECURRENCE_H_
