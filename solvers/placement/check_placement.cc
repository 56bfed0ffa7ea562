#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "solvers/placement/placement.h"

namespace stowage {
namespace {

int64_t RoundUp(Bytes size, Bytes alignment) {
  return (size.value() + alignment.value() - 1) / alignment.value() * alignment.value();
}

// A block begins or ends.
struct Event {
  int64_t moment;
  bool begins;
  size_t block;

  friend bool operator<(const Event& a, const Event& b) {
    if (a.moment != b.moment) return a.moment < b.moment;
    if (a.begins != b.begins) return !a.begins;  // what ends makes room first
    return a.block < b.block;
  }
};

std::vector<Event> EventsOf(const std::vector<BlockLife>& blocks) {
  std::vector<Event> events;
  for (size_t i = 0; i < blocks.size(); ++i) {
    events.push_back({blocks[i].begin, true, i});
    events.push_back({blocks[i].end, false, i});
  }
  std::sort(events.begin(), events.end());
  return events;
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
