#include "solvers/placement/placement.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/placement/coarse_sizes.h"
#include "solvers/placement/ejection.h"
#include "solvers/placement/first_fit.h"
#include "solvers/placement/skyline.h"

namespace stowage {
namespace {

constexpr int64_t kMostNeighbours = 32000000;
// A share of the effort for each target.
constexpr int64_t kTries = 16;
// The effort that pays, for each pair of blocks that live at the same moment.
constexpr int64_t kEffortPerPair = 2000;
// What may be left stranded, as a part of the live peak.
constexpr int64_t kGoodEnough = 5000;
// Coarse units are tried for so many blocks and more, where more than such a part of the live peak is
// stranded without.
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
    const int64_t size = (block.size.value() + alignment.value() - 1) / alignment.value();
    units.push_back({size, block.begin, block.end});
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
    std::stable_sort(order.begin(), order.end(), [&before](int a, int b) {
      return before(static_cast<size_t>(a), static_cast<size_t>(b));
    });
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

// The first target is the live peak. Then each cuts off a share of what is stranded: a larger one after
// a success, a smaller one after failing with both kinds of weights.
void Search(const std::vector<UnitBlock>& blocks, int64_t peak, int64_t effort,
            const StopToken* stop, Best* best) {
  const int64_t good = peak + peak / kGoodEnough;
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
  Search(coarse.blocks, LivePeak(coarse.blocks), effort, stop, &found);
  std::vector<int64_t> offsets(blocks.size(), std::numeric_limits<int64_t>::max());
  for (size_t i = 0; i < coarse.numbers.size(); ++i) {
    offsets[coarse.numbers[i]] = found.offsets()[i] * coarse.unit;
  }
  best->TryFalling(offsets);
}

void SearchBothWays(const std::vector<UnitBlock>& blocks, int64_t peak,
                    const PlacementOptions& options, Best* best) {
  const int64_t pairs = CountNeighbours(blocks);
  if (pairs > kMostNeighbours) return;
  const int64_t effort = std::min(options.effort, kEffortPerPair * pairs);
  const bool many = blocks.size() >= kManyBlocks && best->extent() > peak + peak / kWorthCoarse;
  if (many) SearchCoarsely(blocks, peak, effort / 2, options.stop, best);
  Search(blocks, peak, many ? effort / 2 : effort, options.stop, best);
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
  SearchBothWays(units, peak, options, &best);
  Placement placement;
  const int64_t unit = options.alignment.value();
  for (const int64_t offset : best.offsets()) placement.offsets.push_back(Bytes(offset * unit));
  placement.extent = Bytes(best.extent() * unit);
  placement.live_peak = Bytes(peak * unit);
  status = CheckPlacement(blocks, options.alignment, placement);
  if (!status.ok()) return status;
  return placement;
}

}  // namespace stowage
