// The closed form of optimal checkpointing on equal steps: Griewank & Walther 2000, "Algorithm 799:
// revolve", Proposition 1.
//
// In the referee's accounting: a chain of n equal stages, the loss one of them, where a and saved
// are 1 and gradients and overheads 0, takes BinomialForwards(n, M - 2) forwards beyond the ideal
// within M when nothing is saved ahead. c checkpoints, a^0 among them, leave two units: for a
// forward and its input, or a checkpoint and what the stage after it saves.
#ifndef STOWAGE_SOLVERS_CHAIN_BINOMIAL_H_
#define STOWAGE_SOLVERS_CHAIN_BINOMIAL_H_

#include <cstdint>

namespace stowage {

// t(n, c) = r n - beta(c + 1, r - 1), beta(c, r) = C(c + r, c), r the least with n <= beta(c, r):
// the least number of forward steps, not counting the one right before each reversal, that reverses
// n >= 1 steps with c >= 1 checkpoints, the initial state being one. O(n) at c = 1, O(log n) from
// c = 2 or so on. n <= 2^31.
int64_t BinomialForwards(int64_t steps, int64_t checkpoints);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_BINOMIAL_H_
