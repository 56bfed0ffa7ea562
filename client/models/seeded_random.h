#ifndef STOWAGE_CLIENT_MODELS_SEEDED_RANDOM_H_
#define STOWAGE_CLIENT_MODELS_SEEDED_RANDOM_H_

#include <ATen/Context.h>

#include <cstdint>

#include "client/torch/model/model_state.h"

namespace stowage {

// While it lives LibTorch draws from a generator with this seed; the caller then has the random state back
// that there was before. Not thread-safe.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : guard_({}) { at::manual_seed(seed); }

 private:
  const StateGuard guard_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_SEEDED_RANDOM_H_
