// Positions of stages, vertices and tensors are `int`; containers are indexed by size_t.
#ifndef STOWAGE_SOLVERS_MODEL_INDEX_H_
#define STOWAGE_SOLVERS_MODEL_INDEX_H_

#include <cstddef>

namespace stowage {

// In place of a position where there is none.
inline constexpr int kNoIndex = -1;

// `position` as an index. It must not be negative.
constexpr size_t Index(int position) { return static_cast<size_t>(position); }

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_INDEX_H_
