// Fills the lowest part of the skyline first. Internal to placement.h.
//
// Over all moments there is a height up to which memory is taken. Of the lowest stretch, the first block in
// the order whose life lies within it is put there; where there is none, the stretch rises to its lower
// neighbour (best fit of Sekiyama et al. 2018, "Profile-guided memory optimization for deep neural
// networks", there by life).
#ifndef STOWAGE_SOLVERS_PLACEMENT_SKYLINE_H_
#define STOWAGE_SOLVERS_PLACEMENT_SKYLINE_H_

#include <cstdint>
#include <vector>

#include "solvers/placement/first_fit.h"

namespace stowage {

// Offsets by block. O(n^2).
std::vector<int64_t> PlaceBySkyline(const std::vector<UnitBlock>& blocks, std::vector<int> order);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLACEMENT_SKYLINE_H_
