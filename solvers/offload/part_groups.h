// Which of a stage's saved tensors go to the host together, where they need not all go at once.
#ifndef STOWAGE_SOLVERS_OFFLOAD_PART_GROUPS_H_
#define STOWAGE_SOLVERS_OFFLOAD_PART_GROUPS_H_

#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/units.h"

namespace stowage {

struct PartGroup {
  std::vector<int> parts;  // of the stage, ascending
  Bytes bytes;
};

// Neighbours in the order of saving, until a group has an eighth of what the stage saves, so that
// there are at most eight. What is less than a hundredth of an eighth is in none: it would cost a
// copy and stays on the device. The last part, which has the output, is a group of its own, the last
// one, and always there. Empty where the stage does not list its saved tensors. O(parts).
std::vector<PartGroup> PartGroupsOf(const Stage& stage);

// Whether any stage lists its saved tensors.
bool HasParts(const Chain& chain);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_PART_GROUPS_H_
