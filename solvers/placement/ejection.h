// Looks for a placement within a given extent by throwing out what is in the way. Internal to
// placement.h.
//
// Blocks that have no place wait. The one with the greatest area of size and life is put where what it
// overlaps weighs least, and that waits instead. Whatever had to throw out others gets heavier, so
// that what is hard to place comes to rest first (the ejection chains of Nagata & Braysy 2009, made
// for vehicle routing).
#ifndef STOWAGE_SOLVERS_PLACEMENT_EJECTION_H_
#define STOWAGE_SOLVERS_PLACEMENT_EJECTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solvers/placement/first_fit.h"
#include "solvers/solver.h"

namespace stowage {

// How many pairs of blocks live at the same moment. O(n log n).
int64_t CountNeighbours(const std::vector<UnitBlock>& blocks);

class EjectionSearch {
 public:
  // `blocks` must outlive it. Ends when `effort` is spent or at the stop. O(n log n + pairs).
  EjectionSearch(const std::vector<UnitBlock>& blocks, int64_t effort, const StopToken* stop);

  // Starts with those blocks of `start` that lie within `target`. Whether all got a place there; `effort`
  // is what this try may spend. With `fresh` weights are those of sizes and lives, else what they have
  // grown to.
  bool Reach(int64_t target, const std::vector<int64_t>& start, int64_t effort, bool fresh);

  // After a Reach that did.
  const std::vector<int64_t>& offsets() const { return offsets_; }
  bool exhausted() const { return stopped_ || spent_ >= effort_; }

 private:
  static constexpr int64_t kNowhere = -1;

  // From `offset` on, what lies in the way weighs so much more.
  struct Step {
    int64_t offset;
    int64_t weight;
  };

  bool Overlap(size_t block, int64_t offset, size_t other) const;
  void FindNeighbours();
  void Weigh(int64_t target);
  size_t TakeWaiting();
  // The lowest offset where nothing is in the way; if there is none, one of those where it weighs least.
  int64_t LightestOffset(size_t block, int64_t target, int64_t* weight);
  // Puts it there; what was there waits.
  void Put(size_t block, int64_t offset);
  void Spend(int64_t steps);
  // True once in `chances` times.
  bool Draw(int64_t chances);

  const std::vector<UnitBlock>& blocks_;
  const int64_t effort_;
  StopPoll stop_;
  bool stopped_ = false;
  int64_t spent_ = 0;
  uint64_t random_ = 88172645463325252U;
  std::vector<size_t> first_;    // by block: its neighbours begin there; one more at the end
  std::vector<int> neighbours_;  // that live at the same moment
  std::vector<int64_t> weights_;
  std::vector<int64_t> offsets_;
  std::vector<size_t> waiting_;
  std::vector<Step> steps_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLACEMENT_EJECTION_H_
