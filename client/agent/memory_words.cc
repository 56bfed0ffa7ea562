#include "client/agent/memory_words.h"

#include <algorithm>

#include "solvers/viz/step_timeline.h"

namespace stowage {

std::string MemoryWords(const StepFailure& failure, Bytes before, const Instance& instance,
                        const Schedule& schedule) {
  MemoryReading reading;
  reading.instruction = failure.instruction;
  reading.allocated = failure.allocated;
  reading.before_step = std::max(before, Bytes(0));
  reading.reserved = std::max(failure.reserved, failure.allocated);
  reading.asked = failure.asked;
  reading.limit = failure.limit;
  reading.rounding = failure.rounding;
  reading.held_before = std::max(failure.live_after - reading.before_step, Bytes(0));
  const absl::StatusOr<MemoryFinding> finding = FindMemoryCause(instance, schedule, reading);
  return finding.ok() ? MemoryFindingText(*finding) : "";
}

}  // namespace stowage
