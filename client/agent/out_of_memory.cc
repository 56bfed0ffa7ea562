#include "client/agent/out_of_memory.h"

#include <algorithm>
#include <cstdint>

namespace stowage {

Bytes SmallerBudget(Bytes peak, Bytes got, double factor) {
  const auto part = [factor](Bytes of) {
    return Bytes(static_cast<int64_t>(static_cast<double>(of.value()) * factor));
  };
  const Bytes there = std::max(std::min(got, peak), part(peak));
  return std::max(Bytes(1), std::min(part(there), peak - Bytes(1)));
}

}  // namespace stowage
