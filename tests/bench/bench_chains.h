// Chains for timed figures.
#ifndef STOWAGE_TESTS_BENCH_BENCH_CHAINS_H_
#define STOWAGE_TESTS_BENCH_BENCH_CHAINS_H_

#include <cstdint>

#include "solvers/model/chain.h"

namespace stowage::testing {

// Stages that have nothing in common: 5-50 MB out, up to 200 MB saved beside, 20-60 us forward.
Chain BenchRandomChain(int length, uint64_t seed);

// An embedding, `length` - 2 equal layers, a head.
Chain BenchDecoderChain(int length);

// Bytes of a slot, so that `slots` of them hold `share` of what store-all takes.
int64_t SlotBytes(const Chain& chain, double share, int64_t slots);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_BENCH_BENCH_CHAINS_H_
