#include "solvers/graph/frontier_state.h"

#include <algorithm>

namespace stowage {
namespace {

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 32);
}

}  // namespace

void FrontierState::Keep(const CheckpointGraph& graph, const FrontierOrder& order,
                         const FrontierStep& step) {
  checkpoint_bytes_ += graph.bytes(step.vertex).value();
  for (Segment& segment : open_) {
    if (((segment.members | segment.reach) & step.reads) != 0) segment.reach |= SlotBit(step.slot);
  }
  if (graph.needs_inputs(step.vertex)) AddNeededInputs(graph, order, step.vertex);
  Close(step.ends);
}

void FrontierState::AddNeededInputs(const CheckpointGraph& graph, const FrontierOrder& order,
                                    int v) {
  const auto held = [&](uint64_t slots) {
    int64_t bytes = 0;
    for (const int u : graph.inputs(v)) {
      const uint64_t slot = SlotBit(order.slot[static_cast<size_t>(u)]);
      if ((slot & slots) != 0) bytes += graph.bytes(u).value();
    }
    return bytes;
  };
  uint64_t reads = 0, all = 0, fed = 0;
  for (const int u : graph.inputs(v)) reads |= SlotBit(order.slot[static_cast<size_t>(u)]);
  int count = 0;
  for (const Segment& segment : open_) {
    all |= segment.members;
    if ((segment.members & reads) == 0) continue;
    fed |= segment.members;
    ++count;
  }
  if (count < 2) return;
  const int64_t bytes = held(all);
  for (Segment& segment : open_) {
    if ((segment.members & reads) == 0) continue;
    segment.bytes += bytes - held(segment.members);
    largest_ = std::max(largest_, segment.bytes);
  }
  needs_.push_back({fed, bytes});
}

bool FrontierState::Join(const CheckpointGraph& graph, const FrontierStep& step) {
  Segment whole = {SlotBit(step.slot), 0, 0};
  absl::int128 bytes = graph.bytes(step.vertex).value();
  for (const Segment& segment : open_) {
    if ((segment.members & step.reads) == 0) continue;
    whole.members |= segment.members;
    whole.reach |= segment.reach;
    bytes += segment.bytes;
  }
  const uint64_t waits = whole.members | step.reads;
  if ((whole.reach & waits) != 0) return false;
  if (!needs_.empty()) bytes -= UniteNeeds(step.reads, whole.members);
  // What segments count of others may sum up to more than there is, or than an int64_t holds.
  whole.bytes = static_cast<int64_t>(std::min<absl::int128>(bytes, kMaxTotal));
  const auto joined = [&step](const Segment& s) { return (s.members & step.reads) != 0; };
  open_.erase(std::remove_if(open_.begin(), open_.end(), joined), open_.end());
  for (Segment& segment : open_) {
    if ((segment.reach & waits) != 0) segment.reach |= whole.members | whole.reach;
  }
  largest_ = std::max(largest_, whole.bytes);
  open_.push_back(whole);
  Close(step.ends);
  return true;
}

absl::int128 FrontierState::UniteNeeds(uint64_t slots, uint64_t members) {
  absl::int128 twice = 0;
  for (Need& need : needs_) {
    const auto parts = std::count_if(open_.begin(), open_.end(), [&](const Segment& segment) {
      return (segment.members & slots) != 0 && (segment.members & need.segments) != 0;
    });
    if (parts == 0) continue;
    need.segments |= members;
    twice += absl::int128(parts - 1) * need.bytes;
  }
  return twice;
}

void FrontierState::Close(uint64_t slots) {
  for (Segment& segment : open_) {
    segment.members &= ~slots;
    segment.reach &= ~slots;
  }
  const auto closed = [](const Segment& segment) { return segment.members == 0; };
  open_.erase(std::remove_if(open_.begin(), open_.end(), closed), open_.end());
  const auto lowest = [](const Segment& segment) { return segment.members & -segment.members; };
  std::sort(open_.begin(), open_.end(),
            [&](const Segment& a, const Segment& b) { return lowest(a) < lowest(b); });
  const auto settled = [this](const Need& need) {
    return std::count_if(open_.begin(), open_.end(), [&](const Segment& segment) {
             return (segment.members & need.segments) != 0;
           }) < 2;
  };
  for (Need& need : needs_) need.segments &= ~slots;
  needs_.erase(std::remove_if(needs_.begin(), needs_.end(), settled), needs_.end());
}

double FrontierState::open_bytes() const {
  double sum = 0;
  for (const Segment& segment : open_) sum += static_cast<double>(segment.bytes);
  return sum;
}

uint64_t FrontierState::Hash() const {
  uint64_t hash = open_.size();
  for (const Segment& segment : open_) hash = Mix(Mix(hash, segment.members), segment.reach);
  for (const Need& need : needs_) {
    hash = Mix(Mix(hash, need.segments), static_cast<uint64_t>(need.bytes));
  }
  return hash;
}

bool FrontierState::AgreesWith(const FrontierState& other) const {
  return std::equal(open_.begin(), open_.end(), other.open_.begin(), other.open_.end(),
                    [](const Segment& a, const Segment& b) {
                      return a.members == b.members && a.reach == b.reach;
                    }) &&
         std::equal(needs_.begin(), needs_.end(), other.needs_.begin(), other.needs_.end(),
                    [](const Need& a, const Need& b) {
                      return a.segments == b.segments && a.bytes == b.bytes;
                    });
}

bool FrontierState::Dominates(const FrontierState& other) const {
  return checkpoint_bytes_ <= other.checkpoint_bytes_ && largest_ <= other.largest_ &&
         std::equal(open_.begin(), open_.end(), other.open_.begin(),
                    [](const Segment& a, const Segment& b) { return a.bytes <= b.bytes; });
}

}  // namespace stowage
