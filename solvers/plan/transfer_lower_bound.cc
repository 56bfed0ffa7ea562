#include "solvers/plan/transfer_lower_bound.h"

#include <algorithm>

#include "solvers/plan/lower_bound.h"

namespace stowage {
namespace {

// More than all tensors of the chain together.
Bytes MostOnHost(const Chain& chain, const TransferModel& transfers) {
  Bytes sum = chain.activation(0);
  for (int l = 1; l <= chain.length() + 1; ++l) sum += chain.stage(l).output + chain.stage(l).saved;
  return std::min(sum, transfers.host_memory);
}

Nanos ThereAndBack(const TransferModel& transfers, Bytes bytes) {
  if (bytes == Bytes(0)) return Nanos(0);
  const Nanos there = CopyTime(transfers.to_host, bytes);
  return there + std::min(CopyTime(transfers.to_device, bytes), Nanos(kMaxTotal) - there);
}

}  // namespace

Nanos MakespanLowerBound(const Chain& chain, const TransferModel& transfers, Bytes budget) {
  const auto within = [&chain, budget](Bytes on_host) {
    return MakespanLowerBound(chain, std::min(budget, Bytes(kMaxTotal)) + on_host);
  };
  // The least x such that one byte more than x takes no less than any schedule within x.
  Bytes low;
  Bytes high = MostOnHost(chain, transfers);
  while (low < high) {
    const Bytes middle((low.value() + high.value()) / 2);
    if (ThereAndBack(transfers, middle + Bytes(1)) >= within(middle)) {
      high = middle;
    } else {
      low = middle + Bytes(1);
    }
  }
  // For low itself, and for one byte less.
  return std::max(within(low), ThereAndBack(transfers, low));
}

}  // namespace stowage
