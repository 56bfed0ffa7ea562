#include "tests/bench/load/memory_trail.h"

#include <algorithm>

namespace stowage {

void MemoryTrail::Saw(double second, int64_t resident_bytes) {
  if (resident_bytes > 0) looks_.push_back({second, resident_bytes});  // 0: it has just ended
}

std::optional<int64_t> MemoryTrail::MedianOf(double from_second, double to_second) const {
  constexpr size_t kEnough = 10;
  std::vector<int64_t> bytes;
  for (const Look& look : looks_) {
    if (look.second >= from_second && look.second < to_second) bytes.push_back(look.bytes);
  }
  if (bytes.size() < kEnough) return std::nullopt;
  const auto middle = bytes.begin() + static_cast<int64_t>(bytes.size() / 2);
  std::nth_element(bytes.begin(), middle, bytes.end());
  return *middle;
}

std::optional<MemoryVerdict> MemoryTrail::Judge(double end_second) const {
  MemoryVerdict verdict;
  if (end_second - started_ >= end_second / 2) verdict.from_second = started_;
  const double quarter = (end_second - verdict.from_second) / 4;
  const double begin = verdict.from_second;
  const auto early = MedianOf(begin + quarter, begin + 2 * quarter);
  const auto late = MedianOf(begin + 3 * quarter, end_second);
  if (!early || !late) return std::nullopt;
  verdict.early_bytes = *early;
  verdict.late_bytes = *late;
  return verdict;
}

int64_t MemoryTrail::most_bytes() const {
  int64_t most = 0;
  for (const Look& look : looks_) most = std::max(most, look.bytes);
  return most;
}

}  // namespace stowage
