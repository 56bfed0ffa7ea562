// Selective checkpointing, as torch.utils.checkpoint has it with a policy of operations, for graphs: what is dear to compute is
// kept, the rest of each block is computed again before the block's backward.
#ifndef STOWAGE_TESTS_BENCH_GPU_SELECTIVE_SCHEDULE_H_
#define STOWAGE_TESTS_BENCH_GPU_SELECTIVE_SCHEDULE_H_

#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"
#include "solvers/zoo/network.h"

namespace stowage {

// Blocks are the network's stages; kept are products of matrices, convolutions and attention, and what must not run
// again. The loss runs once. Whether the evaluator accepts it is for the caller to see: where a kept tensor is written
// over in place, it does not. O(vertices + edges).
Schedule SelectiveSchedule(const Network& network, const Graph& graph);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GPU_SELECTIVE_SCHEDULE_H_
