#include "solvers/plan/bound_needs.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

std::vector<int64_t> MomentNeeds(const Chain& chain) {
  const int last = chain.length() + 1;
  std::vector<int64_t> needs(static_cast<size_t>(last) + 1);
  // Whichever gradient is held when the forward runs, it is one of stage l or above.
  Bytes least_gradient = chain.gradient(last);
  for (int l = last; l >= 1; --l) {
    const Stage& s = chain.stage(l);
    least_gradient = std::min(least_gradient, s.output_gradient);
    const Bytes forward = least_gradient + s.forward_saving_overhead;
    const Bytes backward = s.output_gradient + s.backward_overhead;
    needs[static_cast<size_t>(l)] =
        (chain.activation(0) + s.saved + std::max(forward, backward)).value();
  }
  return needs;
}

}  // namespace stowage
