#include "solvers/placement/skyline.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace stowage {
namespace {

// Of the skyline; neighbours are of different height.
struct Stretch {
  int64_t begin;
  int64_t end;
  int64_t height;
};

class Skyline {
 public:
  Skyline(int64_t begin, int64_t end) : stretches_{{begin, end, 0}} {}

  size_t Lowest() const {
    const auto lowest =
        std::min_element(stretches_.begin(), stretches_.end(),
                         [](const Stretch& a, const Stretch& b) { return a.height < b.height; });
    return static_cast<size_t>(lowest - stretches_.begin());
  }

  const Stretch& at(size_t index) const { return stretches_[index]; }

  // Puts a block that lies within the stretch on it.
  void Put(size_t index, const UnitBlock& block) {
    const Stretch old = stretches_[index];
    std::vector<Stretch> parts;
    if (old.begin < block.begin) parts.push_back({old.begin, block.begin, old.height});
    parts.push_back({block.begin, block.end, old.height + block.size});
    if (block.end < old.end) parts.push_back({block.end, old.end, old.height});
    const auto place = stretches_.begin() + static_cast<std::ptrdiff_t>(index);
    stretches_.insert(stretches_.erase(place), parts.begin(), parts.end());
    Join(index + (old.begin < block.begin ? 1 : 0));
  }

  // Lifts the stretch to its lower neighbour. There is one while a block is left: its life is within
  // the whole.
  void Lift(size_t index) {
    int64_t height = std::numeric_limits<int64_t>::max();
    if (index > 0) height = stretches_[index - 1].height;
    if (index + 1 < stretches_.size()) height = std::min(height, stretches_[index + 1].height);
    stretches_[index].height = height;
    Join(index);
  }

 private:
  // Makes one of the stretch and neighbours that are as high.
  void Join(size_t index) {
    if (index + 1 < stretches_.size()) JoinNext(index);
    if (index > 0) JoinNext(index - 1);
  }

  void JoinNext(size_t index) {
    if (stretches_[index].height != stretches_[index + 1].height) return;
    stretches_[index].end = stretches_[index + 1].end;
    stretches_.erase(stretches_.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  }

  std::vector<Stretch> stretches_;  // by moment, without gaps
};

}  // namespace

std::vector<int64_t> PlaceBySkyline(const std::vector<UnitBlock>& blocks, std::vector<int> order) {
  int64_t begin = std::numeric_limits<int64_t>::max();
  int64_t end = std::numeric_limits<int64_t>::min();
  for (const UnitBlock& block : blocks) {
    begin = std::min(begin, block.begin);
    end = std::max(end, block.end);
  }
  std::vector<int64_t> offsets(blocks.size(), 0);
  Skyline skyline(begin, end);
  while (!order.empty()) {
    const size_t lowest = skyline.Lowest();
    const Stretch& stretch = skyline.at(lowest);
    const auto next = std::find_if(order.begin(), order.end(), [&](int index) {
      const UnitBlock& block = blocks[static_cast<size_t>(index)];
      return block.begin >= stretch.begin && block.end <= stretch.end;
    });
    if (next == order.end()) {
      skyline.Lift(lowest);
      continue;
    }
    const auto index = static_cast<size_t>(*next);
    offsets[index] = stretch.height;
    skyline.Put(lowest, blocks[index]);
    order.erase(next);
  }
  return offsets;
}

}  // namespace stowage
