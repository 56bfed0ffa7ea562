#include "solvers/placement/first_fit.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

FirstFit::FirstFit(const std::vector<UnitBlock>& blocks)
    : blocks_(blocks), offsets_(blocks.size(), 0) {
  placed_.reserve(blocks.size());
}

int64_t FirstFit::Place(const std::vector<int>& order) {
  placed_.clear();
  int64_t extent = 0;
  for (const int index : order) {
    const UnitBlock& block = blocks_[static_cast<size_t>(index)];
    int64_t offset = 0;
    size_t next = 0;
    for (; next < placed_.size(); ++next) {
      const Placed& other = placed_[next];
      if (other.begin >= block.end || block.begin >= other.end) continue;
      if (other.offset - offset >= block.size) break;
      offset = std::max(offset, other.top);
    }
    const Placed placed{offset, offset + block.size, block.begin, block.end};
    const auto place =
        std::upper_bound(placed_.begin(), placed_.end(), offset,
                         [](int64_t value, const Placed& other) { return value < other.offset; });
    placed_.insert(place, placed);
    offsets_[static_cast<size_t>(index)] = offset;
    extent = std::max(extent, placed.top);
  }
  return extent;
}

}  // namespace stowage
