// A placement within a given extent, or the proof that there is none: depth first, from the lowest offset up.
//
// Time is cut into sections wherever a block begins or ends. In a canonical placement every block lies on another one, or at
// 0, so that by rising offset each is put at the lowest offset above all that it meets; whoever has a placement has a
// canonical one that reaches no further. A branch ends where, in one section, what is still to come does not fit above the
// lowest offset that anything there can still have (Moffitt 2023, "MiniMalloc": canonical solutions, section inference).
// Blocks that no block links any more are independent, and searched one set after the other.
//
// Exponential at worst; steps are counted, and the same effort gives the same answer on every machine.
#ifndef STOWAGE_SOLVERS_PLACEMENT_INTERNAL_SECTION_SEARCH_H_
#define STOWAGE_SOLVERS_PLACEMENT_INTERNAL_SECTION_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/placement/placement.h"
#include "solvers/solver.h"

namespace stowage {

class SectionSearch {
 public:
  enum class Outcome { kFound, kNone, kSpent };

  // At most 2,048 blocks: its depth is their number, and it lists the sections of each.
  static bool Suits(const std::vector<UnitBlock>& blocks);

  // `blocks`, for which Suits, must outlive it. O(n^2).
  SectionSearch(const std::vector<UnitBlock>& blocks, const StopToken* stop);

  // kNone: no placement has an extent of at most `target`. kSpent: `effort` steps, of about a nanosecond, were not enough, or
  // it was stopped.
  Outcome Fit(int64_t target, int64_t effort);

  // By block, after kFound.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  // Blocks without a place, the most urgent first, and the sections that all of theirs lie in.
  struct Part {
    std::vector<int> open;
    int first;
    int last;
  };

  // What a value was before.
  struct Change {
    int64_t* value;
    int64_t before;
  };

  struct Candidate {
    int64_t offset;
    int64_t rank;
    int block;
  };

  void FindSections();
  void FindNeighbours();
  void Reset();
  void Rank(std::vector<int>* open);
  std::vector<Part> Split(const std::vector<int>& open, int first, int last) const;
  Outcome SearchParts(std::vector<Part> parts);
  Outcome Search(const Part& part, int64_t offset, int64_t rank);
  Outcome Try(const Part& part, const Candidate& candidate);
  bool Put(int block, int64_t offset, const Part& part);
  void Take(int block);
  bool Lift(int block, int64_t offset);
  bool Settle(int section);
  bool SettleAll();
  bool Skip(int block);
  void Undo(size_t changes);
  void Set(int64_t* value, int64_t now);
  bool Spend(int64_t steps);

  const std::vector<UnitBlock>& blocks_;
  StopPoll stop_;
  bool stopped_ = false;
  int64_t left_ = 0;   // steps of all
  int64_t told_ = 0;   // left when the poll was told last
  int64_t nodes_ = 0;  // left of this try
  int64_t target_ = 0;
  int way_ = 0;

  std::vector<std::pair<int, int>> spans_;    // by block: its sections, the last one not among them
  std::vector<std::vector<int>> neighbours_;  // by block: that live at the same time
  std::vector<std::vector<int>> members_;     // by section
  std::vector<int64_t> ranks_;                // by block, in its part: 0 is the most urgent
  std::vector<int64_t> offsets_;              // by block; kNowhere
  std::vector<int64_t> lows_;    // by block: above all that have a place and that it meets
  std::vector<int64_t> floors_;  // by section: the least of the lows of its open blocks
  std::vector<int64_t> rests_;   // by section: the sizes of its open blocks
  std::vector<int> links_;       // by section: open blocks that the next one has, too
  std::vector<Change> changes_;
  std::vector<int> unsettled_;
  std::vector<char> is_unsettled_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLACEMENT_INTERNAL_SECTION_SEARCH_H_
