// Why a step by a plan had no device memory, in words.
#ifndef STOWAGE_CLIENT_AGENT_MEMORY_WORDS_H_
#define STOWAGE_CLIENT_AGENT_MEMORY_WORDS_H_

#include <string>

#include "client/torch/execute/step_failure.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Planned against actual memory at the instruction that failed, and the cause
// (solvers/viz/step_timeline.h). `before`: live before the step, its input not counted. Cost of a
// replay.
std::string MemoryWords(const StepFailure& failure, Bytes before, const Instance& instance,
                        const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_MEMORY_WORDS_H_
