#include "solvers/placement/ejection.h"

#include <algorithm>
#include <numeric>

namespace stowage {
namespace {

// What a block gets heavier by whenever it throws out others; weights of sizes and lives begin at
// some twentieth of it.
constexpr int64_t kGrowth = 1000000;

// Calls visit(block, other) for all pairs that live at the same moment.
template <class Visit>
void VisitPairs(const std::vector<UnitBlock>& blocks, const Visit& visit) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  const auto block = [&blocks](int index) { return blocks[static_cast<size_t>(index)]; };
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

}  // namespace

int64_t CountNeighbours(const std::vector<UnitBlock>& blocks) {
  std::vector<int64_t> ends;
  std::vector<int64_t> begins;
  for (const UnitBlock& block : blocks) {
    begins.push_back(block.begin);
    ends.push_back(block.end);
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  int64_t pairs = 0;
  size_t ended = 0;
  for (size_t begun = 0; begun < begins.size(); ++begun) {
    while (ends[ended] <= begins[begun]) ++ended;
    pairs += static_cast<int64_t>(begun - ended);
  }
  return pairs;
}

EjectionSearch::EjectionSearch(const std::vector<UnitBlock>& blocks, int64_t effort,
                               const StopToken* stop)
    : blocks_(blocks), effort_(effort), stop_(stop) {
  FindNeighbours();
}

void EjectionSearch::FindNeighbours() {
  std::vector<size_t> next(blocks_.size() + 1, 0);
  VisitPairs(blocks_, [&next](int a, int b) {
    ++next[static_cast<size_t>(a) + 1];
    ++next[static_cast<size_t>(b) + 1];
  });
  std::partial_sum(next.begin(), next.end(), next.begin());
  first_ = next;
  neighbours_.resize(first_.back());
  VisitPairs(blocks_, [this, &next](int a, int b) {
    neighbours_[next[static_cast<size_t>(a)]++] = b;
    neighbours_[next[static_cast<size_t>(b)]++] = a;
  });
}

bool EjectionSearch::Reach(int64_t target, const std::vector<int64_t>& start, int64_t effort,
                           bool fresh) {
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

void EjectionSearch::Weigh(int64_t target) {
  const auto count = static_cast<int64_t>(blocks_.size());
  weights_.clear();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const auto neighbours = static_cast<int64_t>(first_[i + 1] - first_[i]);
    const int64_t of_size = 20 * Share(blocks_[i].size, target) + kGrowth / 20;
    weights_.push_back(of_size * (1000 * neighbours / count + 100) / 1000 + 1);
  }
}

size_t EjectionSearch::TakeWaiting() {
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

int64_t EjectionSearch::LightestOffset(size_t block, int64_t target, int64_t* weight) {
  const int64_t size = blocks_[block].size;
  const int64_t highest = target - size;
  steps_.clear();
  int64_t here = 0;
  for (size_t k = first_[block]; k < first_[block + 1]; ++k) {
    const auto other = static_cast<size_t>(neighbours_[k]);
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

bool EjectionSearch::Overlap(size_t block, int64_t offset, size_t other) const {
  return offsets_[other] != kNowhere && offsets_[other] < offset + blocks_[block].size &&
         offset < offsets_[other] + blocks_[other].size;
}

void EjectionSearch::Put(size_t block, int64_t offset) {
  for (size_t k = first_[block]; k < first_[block + 1]; ++k) {
    const auto other = static_cast<size_t>(neighbours_[k]);
    if (!Overlap(block, offset, other)) continue;
    offsets_[other] = kNowhere;
    waiting_.push_back(other);
  }
  offsets_[block] = offset;
}

void EjectionSearch::Spend(int64_t steps) {
  spent_ += steps;
  if (!stop_.Spend(steps).ok()) stopped_ = true;
}

bool EjectionSearch::Draw(int64_t chances) {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_ % static_cast<uint64_t>(chances) == 0;
}

}  // namespace stowage
