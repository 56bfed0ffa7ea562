#include "solvers/chain/binomial.h"

#include <algorithm>

namespace stowage {

int64_t BinomialForwards(int64_t steps, int64_t checkpoints) {
  // One checkpoint per step but the last is all that can be used.
  const int64_t c = std::min(checkpoints, std::max<int64_t>(steps - 1, 1));
  int64_t r = 0, beta = 1;  // beta(c, r)
  while (beta < steps) {
    ++r;
    beta = beta * (c + r) / r;
  }
  return r * steps - beta * r / (c + 1);  // beta(c + 1, r - 1)
}

}  // namespace stowage
