// Graphs made by replacing edges: in series, in parallel, and by parts that are neither.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_SERIES_PARALLEL_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_SERIES_PARALLEL_H_

#include <cstdint>

#include "solvers/graph/checkpoint_graph.h"

namespace stowage::testing {

// At least `vertices` of them and at most 3 more, of 1..1,000,000 bytes each. Starts from one edge;
// a random edge is put in series with another, gets a branch beside it, or becomes a rigid part of
// five edges or of eight, in `rigid` of all cases.
CheckpointGraph RandomSeriesParallel(int vertices, double rigid, uint64_t seed);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_SERIES_PARALLEL_H_
