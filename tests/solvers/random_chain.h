// Random and enumerated chains for the tests.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_CHAIN_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_CHAIN_H_

#include <random>
#include <string>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

struct RandomChainOptions {
  int max_size = 5;
  int max_time = 6;
  bool with_loss = true;    // the loss has costs of its own
  bool with_flags = false;  // some stages must be kept
  bool with_input_gradient = false;
  bool with_stops = false;  // recomputes of some stages stop early
};

// With and without a loss, flags, an input gradient and recomputes that stop early, in turns.
RandomChainOptions VariedOptions(int i);

Chain RandomChain(int length, const RandomChainOptions& options, std::mt19937_64* rng);

// `period` random stages over and over, and a last one of its own; some must be kept.
Chain PeriodicChain(int length, int period, std::mt19937_64* rng);

// The same with lists of saved tensors in most stages.
Chain WithSavedTensors(const Chain& chain, std::mt19937_64* rng);

// A valid schedule drawn from everything the evaluator allows on chains: nested recompute,
// duplicates, discards, reduces.
Schedule RandomSchedule(const Chain& chain, std::mt19937_64* rng);

// "L=3 input=2 [u_f=1 u_b=2 a=1 saved=2 ...] ...": to reproduce a failure.
std::string Describe(const Chain& chain);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_CHAIN_H_
