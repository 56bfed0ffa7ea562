// The blocks of memory of a static schedule: what lives when, by the accounting of the evaluator
// (accounting.md). What offsets are planned for (solvers/placement).
//
// Time steps count the states of a replay: instruction i runs in time step 2i, and 2i + 1 is what it leaves
// behind. At every time step the blocks that live then add up to exactly what the evaluator says is held,
// or taken while the instruction runs; the greatest of these sums is the schedule's peak.
//
// Of a chain, what a stage saves is its parts (Stage::parts), a block each, and of the last, or of all
// where they are not known, the output by itself: it outlives the others where the schedule drops the rest (drop-saved-keep-output).
// Of a graph, a block is a tensor, its gradient, or a vertex's extras. What an op takes beyond what it
// leaves behind is one block. What is held at the start begins at time step 0, what is left at the end
// ends after the last. A tensor that comes back from the host is a new block.
#ifndef STOWAGE_SOLVERS_SCHEDULE_SCHEDULE_BLOCKS_H_
#define STOWAGE_SOLVERS_SCHEDULE_SCHEDULE_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Bytes that are taken at the time steps [begin, end); both are above 0.
struct BlockLife {
  Bytes size;
  int64_t begin = 0;
  int64_t end = 0;
};

enum class BlockUse : uint8_t { kActivation, kSaved, kGradient, kWorkspace };

// What a block is for, and of which stage or vertex, as instructions name it.
struct BlockName {
  BlockUse use = BlockUse::kActivation;
  int32_t stage = 0;
};

// In the order of the instructions that make them.
struct ScheduleBlocks {
  std::vector<BlockLife> lives;
  std::vector<BlockName> names;  // of the same blocks
};

// INVALID_ARGUMENT as Evaluator::Run has it, and for a schedule with ops on the
// communication stream, whose memory goes when compute waits for them. O(stages or vertices + edges +
// the inputs and saved tensors that the instructions touch).
absl::StatusOr<ScheduleBlocks> BlocksOf(const Instance& instance, const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_SCHEDULE_BLOCKS_H_
