#include "solvers/plan/bound_knapsack.h"

#include <algorithm>

namespace stowage {
namespace {

constexpr int kFractionBits = 60;

}  // namespace

void BoundKnapsack::Add(int64_t bytes, int64_t time, int64_t whole) {
  held_ += bytes;
  items_.push({bytes, time, whole});
}

double BoundKnapsack::Require(int64_t room) {
  double price = 0;
  while (held_ > room && !items_.empty()) {
    Item item = items_.top();
    items_.pop();
    const int64_t given_up = std::min(held_ - room, item.bytes);
    held_ -= given_up;
    price = static_cast<double>(item.time) / static_cast<double>(item.whole);
    item.bytes -= given_up;
    const absl::int128 cost = absl::int128(item.time) * given_up;
    time_ +=
        (cost / item.whole << kFractionBits) + (cost % item.whole << kFractionBits) / item.whole;
    if (item.bytes > 0) items_.push(item);
  }
  return price;
}

int64_t BoundKnapsack::RoundedUp() const {
  const absl::int128 one = absl::int128(1) << kFractionBits;
  return static_cast<int64_t>((time_ + one - 1) / one);
}

}  // namespace stowage
