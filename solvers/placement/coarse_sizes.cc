#include "solvers/placement/coarse_sizes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace stowage {
namespace {

// Of the live peak: what tiny blocks may take of it at once, and what rounding may add to it.
constexpr int64_t kTiny = 500;
constexpr int64_t kLoss = 200;
// Units that are tried: the sizes that take the most, through 1 to kMostParts.
constexpr size_t kSizes = 12;
constexpr int64_t kMostParts = 32;

// Live peaks of blocks with other sizes.
class Peaks {
 public:
  explicit Peaks(const std::vector<UnitBlock>& blocks) : blocks_(blocks) {
    for (size_t i = 0; i < blocks.size(); ++i) {
      events_.push_back({blocks[i].begin, 1, i});
      events_.push_back({blocks[i].end, 0, i});
    }
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::make_pair(a.moment, a.begins) < std::make_pair(b.moment, b.begins);
    });
  }

  // `size` of each block instead of its own.
  int64_t Of(const std::function<int64_t(int64_t)>& size) const {
    int64_t live = 0;
    int64_t peak = 0;
    for (const Event& event : events_) {
      const int64_t change = size(blocks_[event.block].size);
      peak = std::max(peak, live += event.begins == 1 ? change : -change);
    }
    return peak;
  }

 private:
  // What ends makes room first.
  struct Event {
    int64_t moment;
    int begins;
    size_t block;
  };

  const std::vector<UnitBlock>& blocks_;
  std::vector<Event> events_;
};

// The largest size such that all blocks of at most that take next to nothing together.
int64_t TinySize(const std::vector<UnitBlock>& blocks, const Peaks& peaks, int64_t peak) {
  std::set<int64_t> distinct;
  for (const UnitBlock& block : blocks) distinct.insert(block.size);
  const std::vector<int64_t> sizes(distinct.begin(), distinct.end());
  const auto first_large = std::partition_point(sizes.begin(), sizes.end(), [&](int64_t limit) {
    return peaks.Of([limit](int64_t size) { return size <= limit ? size : 0; }) <= peak / kTiny;
  });
  return first_large == sizes.begin() ? 0 : *std::prev(first_large);
}

// The largest first.
std::set<int64_t, std::greater<>> Units(const std::vector<UnitBlock>& blocks, int64_t tiny) {
  std::map<int64_t, double> areas;
  for (const UnitBlock& block : blocks) {
    if (block.size <= tiny) continue;
    areas[block.size] +=
        static_cast<double>(block.size) * static_cast<double>(block.end - block.begin);
  }
  std::vector<std::pair<double, int64_t>> most;
  for (const auto& [size, area] : areas) most.emplace_back(-area, size);
  std::sort(most.begin(), most.end());
  if (most.size() > kSizes) most.resize(kSizes);
  std::set<int64_t, std::greater<>> units;
  for (const auto& [area, size] : most) {
    for (int64_t parts = 1; parts <= kMostParts && parts <= size; ++parts)
      units.insert(size / parts);
  }
  return units;
}

int64_t InUnits(int64_t size, int64_t unit) { return (size + unit - 1) / unit; }

}  // namespace

int64_t LivePeak(const std::vector<UnitBlock>& blocks) {
  return Peaks(blocks).Of([](int64_t size) { return size; });
}

CoarseSizes FindCoarseSizes(const std::vector<UnitBlock>& blocks, int64_t peak) {
  const Peaks peaks(blocks);
  const int64_t tiny = TinySize(blocks, peaks, peak);
  const int64_t tiny_peak = peaks.Of([tiny](int64_t size) { return size <= tiny ? size : 0; });
  CoarseSizes coarse;
  for (const int64_t unit : Units(blocks, tiny)) {
    const int64_t rounded = peaks.Of(
        [tiny, unit](int64_t size) { return size <= tiny ? 0 : InUnits(size, unit) * unit; });
    if (rounded + tiny_peak > peak + peak / kLoss) continue;
    coarse.unit = unit;
    break;
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const UnitBlock& block = blocks[i];
    if (block.size <= tiny) {
      coarse.tiny.push_back(i);
      continue;
    }
    coarse.blocks.push_back({InUnits(block.size, coarse.unit), block.begin, block.end});
    coarse.numbers.push_back(i);
  }
  return coarse;
}

}  // namespace stowage
