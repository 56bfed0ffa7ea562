// The parts of a chain's saved tensors on the link to host memory: their numbers there, and which of
// them are not simply here. Internal to the referee (simulate.h has the rules).
#ifndef STOWAGE_SOLVERS_PLAN_SAVED_PARTS_H_
#define STOWAGE_SOLVERS_PLAN_SAVED_PARTS_H_

#include <cstddef>
#include <set>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/units.h"

namespace stowage {

// Of all stages. O(stages).
size_t CountParts(const Chain& chain);

class SavedParts {
 public:
  // Numbers the parts from `first` on. O(stages + parts).
  SavedParts(const Chain& chain, size_t first);

  // Part k in 1..parts() of saved l.
  size_t Number(int l, int k) const {
    return begin_[static_cast<size_t>(l)] + static_cast<size_t>(k) - 1;
  }
  int PartOf(int l, size_t number) const {
    return static_cast<int>(number - begin_[static_cast<size_t>(l)]) + 1;
  }
  Bytes bytes(size_t number) const { return bytes_[number - first_]; }
  // The number of the last part of saved l, which holds the output.
  size_t Rest(int l) const { return begin_[static_cast<size_t>(l) + 1] - 1; }

  // Notes that a part starts to leave, or is back or gone. O(log parts).
  void Leave(size_t number) { moved_.insert(number); }
  void Settle(size_t number) { moved_.erase(number); }
  // The numbers of saved l's parts that left and did not settle. O(log parts + their number).
  std::vector<size_t> Moved(int l) const;

 private:
  size_t first_;
  std::vector<size_t> begin_;  // by stage, the number of its first part; one more at the end
  std::vector<Bytes> bytes_;   // by number
  std::set<size_t> moved_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_SAVED_PARTS_H_
