#include "solvers/placement/placement.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/model/index.h"
#include "solvers/placement/internal/section_search.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

int64_t InUnits(int64_t size, int64_t unit) { return (size + unit - 1) / unit; }

// A block begins or ends.
struct Event {
  int64_t time;
  bool begins;
  size_t block;
};

// In the order of time; blocks that end come before those that begin then.
template <class Block>
std::vector<Event> EventsOf(const std::vector<Block>& blocks) {
  std::vector<Event> events;
  for (size_t i = 0; i < blocks.size(); ++i) {
    events.push_back({blocks[i].begin, true, i});
    events.push_back({blocks[i].end, false, i});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.time, a.begins, a.block) < std::tie(b.time, b.begins, b.block);
  });
  return events;
}

// Puts blocks at the lowest free offset, one by one.
class FirstFit {
 public:
  // `blocks` must outlive it.
  explicit FirstFit(const std::vector<UnitBlock>& blocks)
      : blocks_(blocks), offsets_(blocks.size(), 0) {
    placed_.reserve(blocks.size());
  }

  // Places all blocks in the order given. O(n^2). Returns the extent.
  int64_t Place(const std::vector<int>& order) {
    placed_.clear();
    int64_t extent = 0;
    for (const int index : order) {
      const UnitBlock& block = blocks_[Index(index)];
      int64_t offset = 0;
      for (const Placed& other : placed_) {
        if (other.begin >= block.end || block.begin >= other.end) continue;
        if (other.offset - offset >= block.size) break;
        offset = std::max(offset, other.top);
      }
      const Placed placed{offset, offset + block.size, block.begin, block.end};
      const auto place =
          std::upper_bound(placed_.begin(), placed_.end(), offset,
                           [](int64_t value, const Placed& other) { return value < other.offset; });
      placed_.insert(place, placed);
      offsets_[Index(index)] = offset;
      extent = std::max(extent, placed.top);
    }
    return extent;
  }

  // Of the last Place, by block.
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  struct Placed {
    int64_t offset;
    int64_t top;
    int64_t begin;
    int64_t end;
  };

  const std::vector<UnitBlock>& blocks_;
  std::vector<Placed> placed_;  // by offset
  std::vector<int64_t> offsets_;
};

// A part of the skyline, the height up to which memory is taken by time; neighbours are of different
// height.
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

  std::vector<Stretch> stretches_;  // by time, without gaps
};

// Of the lowest stretch of the skyline, the first block in the order whose life lies within it is put
// there; where there is none, the stretch rises to its lower neighbour (best fit of Sekiyama et al.
// 2018, "Profile-guided memory optimization for deep neural networks", there by life). Offsets by
// block. O(n^2).
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
      const UnitBlock& block = blocks[Index(index)];
      return block.begin >= stretch.begin && block.end <= stretch.end;
    });
    if (next == order.end()) {
      skyline.Lift(lowest);
      continue;
    }
    const auto index = Index(*next);
    offsets[index] = stretch.height;
    skyline.Put(lowest, blocks[index]);
    order.erase(next);
  }
  return offsets;
}

// What a block gets heavier by whenever it throws out others; weights of sizes and lives begin at
// some twentieth of it.
constexpr int64_t kGrowth = 1000000;

// Calls visit(block, other) for all pairs that live at the same time.
template <class Visit>
void VisitPairs(const std::vector<UnitBlock>& blocks, const Visit& visit) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto block = [&blocks](int index) { return blocks[Index(index)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&block](int a, int b) { return block(a).begin < block(b).begin; });
  std::vector<int> live;
  for (const int index : order) {
    const int64_t now = block(index).begin;
    live.erase(std::remove_if(live.begin(), live.end(),
                              [&](int other) { return block(other).end <= now; }),
               live.end());
    for (const int other : live) visit(index, other);
    live.push_back(index);
  }
}

// size / target, in millionths.
int64_t Share(int64_t size, int64_t target) {
  constexpr int64_t kMillion = 1000000;
  constexpr int64_t kSmall = int64_t{1} << 40;
  return target < kSmall ? size * kMillion / target : size / (target / kMillion);
}

// How many pairs of blocks live at the same time. O(n log n).
int64_t CountNeighbours(const std::vector<UnitBlock>& blocks) {
  int64_t pairs = 0, live = 0;
  for (const Event& event : EventsOf(blocks)) {
    if (event.begins) pairs += live;
    live += event.begins ? 1 : -1;
  }
  return pairs;
}

// Looks for a placement within a given extent by throwing out what is in the way.
//
// Blocks that have no place wait. The one with the greatest area of size and life is put where what it
// overlaps weighs least, and that waits instead. Whatever had to throw out others gets heavier, so
// that what is hard to place comes to rest first (the ejection chains of Nagata & Braysy 2009, made
// for vehicle routing).
class EjectionSearch {
 public:
  // `blocks` must outlive it. Ends when `effort` is spent or at the stop. O(n log n + pairs).
  EjectionSearch(const std::vector<UnitBlock>& blocks, int64_t effort, const StopToken* stop)
      : blocks_(blocks), effort_(effort), stop_(stop) {
    FindNeighbours();
  }

  // Starts with those blocks of `start` that lie within `target`. Whether all got a place there; `effort`
  // is what this try may spend. With `fresh` weights are those of sizes and lives, else what they have
  // grown to.
  bool Reach(int64_t target, const std::vector<int64_t>& start, int64_t effort, bool fresh) {
    if (fresh || weights_.empty()) Weigh(target);
    offsets_ = start;
    waiting_.clear();
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (blocks_[i].size > target) return false;
      if (offsets_[i] + blocks_[i].size <= target) continue;
      offsets_[i] = kNowhere;
      waiting_.push_back(i);
    }
    const int64_t limit = spent_ + effort;
    while (!waiting_.empty()) {
      if (exhausted() || spent_ >= limit) return false;
      const size_t block = TakeWaiting();
      int64_t weight = 0;
      const int64_t offset = LightestOffset(block, target, &weight);
      if (weight > 0) weights_[block] += kGrowth;
      Put(block, offset);
    }
    return true;
  }

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

  void FindNeighbours() {
    std::vector<size_t> next(blocks_.size() + 1, 0);
    VisitPairs(blocks_, [&next](int a, int b) {
      ++next[Index(a) + 1];
      ++next[Index(b) + 1];
    });
    std::partial_sum(next.begin(), next.end(), next.begin());
    first_ = next;
    neighbours_.resize(first_.back());
    VisitPairs(blocks_, [this, &next](int a, int b) {
      neighbours_[next[Index(a)]++] = b;
      neighbours_[next[Index(b)]++] = a;
    });
  }

  void Weigh(int64_t target) {
    const auto count = static_cast<int64_t>(blocks_.size());
    weights_.clear();
    for (size_t i = 0; i < blocks_.size(); ++i) {
      const auto neighbours = static_cast<int64_t>(first_[i + 1] - first_[i]);
      const int64_t of_size = 20 * Share(blocks_[i].size, target) + kGrowth / 20;
      weights_.push_back(of_size * (1000 * neighbours / count + 100) / 1000 + 1);
    }
  }

  size_t TakeWaiting() {
    const auto area = [this](size_t i) {
      return static_cast<double>(blocks_[i].size) * static_cast<double>(first_[i + 1] - first_[i]);
    };
    const auto most = std::max_element(waiting_.begin(), waiting_.end(),
                                       [&area](size_t a, size_t b) { return area(a) < area(b); });
    const size_t block = *most;
    *most = waiting_.back();
    waiting_.pop_back();
    return block;
  }

  // The lowest offset where nothing is in the way; if there is none, one of those where it weighs
  // least.
  int64_t LightestOffset(size_t block, int64_t target, int64_t* weight) {
    const int64_t size = blocks_[block].size;
    const int64_t highest = target - size;
    steps_.clear();
    int64_t here = 0;
    for (size_t k = first_[block]; k < first_[block + 1]; ++k) {
      const auto other = Index(neighbours_[k]);
      if (offsets_[other] == kNowhere) continue;
      // In the way from `from` to below `to`.
      const int64_t from = offsets_[other] - size + 1;
      const int64_t to = offsets_[other] + blocks_[other].size;
      if (from <= 0) here += weights_[other];
      if (from > 0 && from <= highest) steps_.push_back({from, weights_[other]});
      if (to <= highest) steps_.push_back({to, -weights_[other]});
    }
    Spend(static_cast<int64_t>(first_[block + 1] - first_[block] + 4 * steps_.size()));
    std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) {
      return a.offset != b.offset ? a.offset < b.offset : a.weight < b.weight;
    });
    int64_t best = 0;
    int64_t ties = 1;
    *weight = here;
    for (size_t i = 0; i < steps_.size() && *weight > 0;) {
      const int64_t offset = steps_[i].offset;
      for (; i < steps_.size() && steps_[i].offset == offset; ++i) here += steps_[i].weight;
      if (here > *weight) continue;
      ties = here < *weight ? 1 : ties + 1;
      if (ties == 1 || Draw(ties)) best = offset;
      *weight = here;
      // What it will be near to on the other side.
      const int64_t last = (i < steps_.size() ? steps_[i].offset : highest + 1) - 1;
      if (here > 0 && last > offset && Draw(++ties)) best = last;
    }
    return best;
  }

  bool Overlap(size_t block, int64_t offset, size_t other) const {
    return offsets_[other] != kNowhere && offsets_[other] < offset + blocks_[block].size &&
           offset < offsets_[other] + blocks_[other].size;
  }

  // Puts it there; what was there waits.
  void Put(size_t block, int64_t offset) {
    for (size_t k = first_[block]; k < first_[block + 1]; ++k) {
      const auto other = Index(neighbours_[k]);
      if (!Overlap(block, offset, other)) continue;
      offsets_[other] = kNowhere;
      waiting_.push_back(other);
    }
    offsets_[block] = offset;
  }

  void Spend(int64_t steps) {
    spent_ += steps;
    if (!stop_.Spend(steps).ok()) stopped_ = true;
  }

  // True once in `chances` times.
  bool Draw(int64_t chances) {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return random_ % static_cast<uint64_t>(chances) == 0;
  }

  const std::vector<UnitBlock>& blocks_;
  const int64_t effort_;
  StopPoll stop_;
  bool stopped_ = false;
  int64_t spent_ = 0;
  uint64_t random_ = 88172645463325252U;
  std::vector<size_t> first_;    // by block: its neighbours begin there; one more at the end
  std::vector<int> neighbours_;  // that live at the same time
  std::vector<int64_t> weights_;
  std::vector<int64_t> offsets_;
  std::vector<size_t> waiting_;
  std::vector<Step> steps_;
};

constexpr int64_t kMostNeighbours = 32000000;
// A share of the effort for each target.
constexpr int64_t kTries = 16;
// The effort that pays, for each pair of blocks that live at the same time.
constexpr int64_t kEffortPerPair = 2000;
// Steps of the search of sections in the time of one of the others; its part of the effort where no capacity is given.
constexpr int64_t kSectionSteps = 8;
constexpr int64_t kSectionShare = 4;
// What may be lost to fragmentation, as a part of the live peak.
constexpr int64_t kGoodEnough = 5000;
// Coarse units are tried for so many blocks and more, where more than such a part of the live peak is
// lost to fragmentation without.
constexpr size_t kManyBlocks = 256;
constexpr int64_t kWorthCoarse = 100;

absl::Status CheckInput(const std::vector<BlockLife>& blocks, const PlacementOptions& options) {
  if (options.alignment < Bytes(1) || options.alignment.value() >= kMaxTotal) {
    return absl::InvalidArgumentError(
        absl::StrCat("alignment: ", options.alignment.value(), " is not in [1, 2^62)"));
  }
  if (options.effort < 0) {
    return absl::InvalidArgumentError(absl::StrCat("effort: ", options.effort, " is negative"));
  }
  if (options.capacity < Bytes(0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("capacity: ", options.capacity.value(), " is negative"));
  }
  int64_t left = kMaxTotal - 1;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const BlockLife& block = blocks[i];
    if (block.size < Bytes(1) || block.begin >= block.end) {
      return absl::InvalidArgumentError(absl::StrCat("block ", i, ": ", block.size.value(),
                                                     " bytes from ", block.begin, " to ", block.end,
                                                     ": none may be empty"));
    }
    const int64_t most = left - (options.alignment.value() - 1);
    if (block.size.value() > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("block ", i, ": the sizes add up to 2^62 bytes or more"));
    }
    left = most - block.size.value();
  }
  return absl::OkStatus();
}

std::vector<UnitBlock> InUnits(const std::vector<BlockLife>& blocks, Bytes alignment) {
  std::vector<UnitBlock> units;
  units.reserve(blocks.size());
  for (const BlockLife& block : blocks) {
    units.push_back({InUnits(block.size.value(), alignment.value()), block.begin, block.end});
  }
  return units;
}

// Better than a placement with a greater extent.
class Best {
 public:
  explicit Best(const std::vector<UnitBlock>& blocks) : blocks_(blocks), first_fit_(blocks) {}

  // Tries the order of falling keys, in both ways.
  template <class Key>
  void TryByKey(const Key& key) {
    std::vector<double> keys;
    for (const UnitBlock& block : blocks_) keys.push_back(key(block));
    const std::vector<int> order =
        OrderBy([&keys](size_t a, size_t b) { return keys[a] > keys[b]; });
    Try(order);
    TryFalling(PlaceBySkyline(blocks_, order));
  }

  // Lets all fall to the lowest free offset, from the lowest on: none rises.
  void TryFalling(const std::vector<int64_t>& offsets) {
    Try(OrderBy([&offsets](size_t a, size_t b) { return offsets[a] < offsets[b]; }));
  }

  int64_t extent() const { return extent_; }
  const std::vector<int64_t>& offsets() const { return offsets_; }

 private:
  template <class Before>
  std::vector<int> OrderBy(const Before& before) const {
    std::vector<int> order(blocks_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&before](int a, int b) { return before(Index(a), Index(b)); });
    return order;
  }

  void Try(const std::vector<int>& order) {
    const int64_t extent = first_fit_.Place(order);
    if (extent >= extent_) return;
    extent_ = extent;
    offsets_ = first_fit_.offsets();
  }

  const std::vector<UnitBlock>& blocks_;
  FirstFit first_fit_;
  int64_t extent_ = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> offsets_;
};

double Size(const UnitBlock& block) { return static_cast<double>(block.size); }
double Life(const UnitBlock& block) { return static_cast<double>(block.end - block.begin); }

double Area(const UnitBlock& block) { return Size(block) * Life(block); }
double AreaBySize(const UnitBlock& block) { return Size(block) * Area(block); }
double Earliness(const UnitBlock& block) { return -static_cast<double>(block.begin); }

void TryOrders(const StopToken* stop, Best* best) {
  best->TryByKey(Area);
  for (const auto key : {Size, Life, AreaBySize, Earliness}) {
    if (stop == nullptr || stop->Check().ok()) best->TryByKey(key);
  }
}

int64_t Good(int64_t peak) { return peak + peak / kGoodEnough; }

// The first target is the live peak. Then each cuts off a share of what is lost to fragmentation: a larger one after
// a success, a smaller one after failing with both kinds of weights.
void Search(const std::vector<UnitBlock>& blocks, int64_t peak, int64_t good, int64_t effort,
            const StopToken* stop, Best* best) {
  if (best->extent() <= good) return;
  EjectionSearch search(blocks, effort, stop);
  double share = 1.0;
  bool fresh = true;
  int failures = 1;  // of the live peak one is enough
  while (best->extent() > good && !search.exhausted()) {
    const auto cut = static_cast<int64_t>(static_cast<double>(best->extent() - peak) * share);
    const int64_t target = best->extent() - std::max<int64_t>(1, cut);
    if (search.Reach(target, best->offsets(), 1 + effort / kTries, fresh)) {
      best->TryFalling(search.offsets());
      share = std::min(0.5, share * 1.5);
      failures = 0;
      continue;
    }
    fresh = !fresh;
    if (++failures % 2 == 0) share /= 2.0;
  }
}

// The same in coarse units; the tiny blocks then take what is left.
void SearchCoarsely(const std::vector<UnitBlock>& blocks, int64_t peak, int64_t effort,
                    const StopToken* stop, Best* best) {
  const CoarseSizes coarse = FindCoarseSizes(blocks, peak);
  if (coarse.unit == 1) return;
  Best found(coarse.blocks);
  TryOrders(stop, &found);
  const int64_t coarse_peak = LivePeak(coarse.blocks);
  Search(coarse.blocks, coarse_peak, Good(coarse_peak), effort, stop, &found);
  std::vector<int64_t> offsets(blocks.size(), std::numeric_limits<int64_t>::max());
  for (size_t i = 0; i < coarse.numbers.size(); ++i) {
    offsets[coarse.numbers[i]] = found.offsets()[i] * coarse.unit;
  }
  best->TryFalling(offsets);
}

void SearchSections(const std::vector<UnitBlock>& blocks, int64_t good, int64_t effort,
                    const StopToken* stop, Best* best) {
  if (best->extent() <= good || !SectionSearch::Suits(blocks)) return;
  SectionSearch search(blocks, stop);
  const int64_t steps = kSectionSteps * std::min(effort, kMaxTotal / kSectionSteps);
  if (search.Fit(good, steps) != SectionSearch::Outcome::kFound) return;
  best->TryFalling(search.offsets());
}

void SearchAllWays(const std::vector<UnitBlock>& blocks, int64_t peak,
                   const PlacementOptions& options, Best* best) {
  const int64_t pairs = CountNeighbours(blocks);
  if (pairs > kMostNeighbours) return;
  const int64_t effort = std::min(options.effort, kEffortPerPair * pairs);
  const int64_t capacity = options.capacity.value() / options.alignment.value();
  const int64_t good = capacity >= peak ? capacity : Good(peak);
  const int64_t for_sections = capacity > 0 ? options.effort : effort / kSectionShare;
  SearchSections(blocks, good, for_sections, options.stop, best);
  if (best->extent() <= good) return;
  const bool many = blocks.size() >= kManyBlocks && best->extent() > peak + peak / kWorthCoarse;
  if (many) SearchCoarsely(blocks, peak, effort / 2, options.stop, best);
  Search(blocks, peak, good, many ? effort / 2 : effort, options.stop, best);
}

}  // namespace

absl::StatusOr<Placement> PlaceBlocks(const std::vector<BlockLife>& blocks,
                                      const PlacementOptions& options) {
  absl::Status status = CheckInput(blocks, options);
  if (!status.ok()) return status;
  if (blocks.empty()) return Placement();
  const std::vector<UnitBlock> units = InUnits(blocks, options.alignment);
  const int64_t peak = LivePeak(units);
  Best best(units);
  TryOrders(options.stop, &best);
  SearchAllWays(units, peak, options, &best);
  Placement placement;
  const int64_t unit = options.alignment.value();
  for (const int64_t offset : best.offsets()) placement.offsets.push_back(Bytes(offset * unit));
  placement.extent = Bytes(best.extent() * unit);
  placement.live_peak = Bytes(peak * unit);
  status = CheckPlacement(blocks, options.alignment, placement);
  if (!status.ok()) return status;
  return placement;
}

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
  explicit Peaks(const std::vector<UnitBlock>& blocks)
      : blocks_(blocks), events_(EventsOf(blocks)) {}

  // `size` of each block instead of its own.
  int64_t Of(const std::function<int64_t(int64_t)>& size) const {
    int64_t live = 0;
    int64_t peak = 0;
    for (const Event& event : events_) {
      const int64_t change = size(blocks_[event.block].size);
      peak = std::max(peak, live += event.begins ? change : -change);
    }
    return peak;
  }

 private:
  const std::vector<UnitBlock>& blocks_;
  const std::vector<Event> events_;
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

namespace {

int64_t RoundUp(Bytes size, Bytes alignment) {
  return InUnits(size.value(), alignment.value()) * alignment.value();
}

absl::Status OverlapError(size_t a, size_t b) {
  return absl::InternalError(
      absl::StrCat("blocks ", std::min(a, b), " and ", std::max(a, b), " overlap"));
}

}  // namespace

absl::Status CheckPlacement(const std::vector<BlockLife>& blocks, Bytes alignment,
                            const Placement& placement) {
  if (placement.offsets.size() != blocks.size()) {
    return absl::InternalError(absl::StrCat("there are ", blocks.size(), " blocks and ",
                                            placement.offsets.size(), " offsets"));
  }
  std::map<int64_t, size_t> live;  // blocks by offset
  int64_t bytes = 0;
  Bytes peak;
  Bytes extent;
  for (const Event& event : EventsOf(blocks)) {
    const int64_t offset = placement.offsets[event.block].value();
    const int64_t size = RoundUp(blocks[event.block].size, alignment);
    if (!event.begins) {
      live.erase(offset);
      bytes -= size;
      continue;
    }
    if (offset < 0 || offset % alignment.value() != 0) {
      return absl::InternalError(absl::StrCat("block ", event.block, " is at ", offset,
                                              ", not at a multiple of ", alignment.value()));
    }
    const auto [here, free] = live.emplace(offset, event.block);
    if (!free) return OverlapError(event.block, here->second);
    const auto next = std::next(here);
    if (next != live.end() && next->first < offset + size) {
      return OverlapError(event.block, next->second);
    }
    if (here != live.begin()) {
      const auto [before, other] = *std::prev(here);
      if (before + RoundUp(blocks[other].size, alignment) > offset) {
        return OverlapError(event.block, other);
      }
    }
    bytes += size;
    peak = std::max(peak, Bytes(bytes));
    extent = std::max(extent, Bytes(offset + size));
  }
  if (extent == placement.extent && peak == placement.live_peak) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("extent and live peak are ", extent.value(), " and ",
                                          peak.value(), " bytes, not ", placement.extent.value(),
                                          " and ", placement.live_peak.value()));
}

}  // namespace stowage
