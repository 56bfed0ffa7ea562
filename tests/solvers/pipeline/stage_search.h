// Exhaustive search over the memory-persistent schedules of a stage of a pipeline: all that a stage can be, each in
// time, stash and peaks. Knows what a forward and a backward task are; knows nothing of items or of any recurrence. Of
// short chains.
#ifndef STOWAGE_TESTS_SOLVERS_PIPELINE_STAGE_SEARCH_H_
#define STOWAGE_TESTS_SOLVERS_PIPELINE_STAGE_SEARCH_H_

#include <array>
#include <cstdint>
#include <vector>

#include "solvers/model/chain.h"

namespace stowage::testing {

// Time of the backward task, stash, peak of the forward and of the backward task.
using StageLabel = std::array<int64_t, 4>;

// Labels of which no other is at most as large in all four. `is_last`: the chain's loss is run, too; else the output is
// sent, and its gradient comes in.
std::vector<StageLabel> SearchStage(const Chain& chain, bool is_last);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_PIPELINE_STAGE_SEARCH_H_
