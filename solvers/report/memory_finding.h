// Why a step ran out of memory: what was planned at the instruction that failed, beside what the allocator
// said, and which of the ways in which they can differ it was.
//
//   workspace      the instruction takes more than the profile says
//   live beside    more was live when it began than the plan says: somebody holds tensors
//   fragmentation  there was memory enough, but reserved and in pieces
//   elsewhere      all was as planned: the plan's memory is not there, others have it
#ifndef STOWAGE_SOLVERS_REPORT_MEMORY_FINDING_H_
#define STOWAGE_SOLVERS_REPORT_MEMORY_FINDING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/plan/schedule.h"
#include "solvers/report/step_timeline.h"

namespace stowage {

// What the allocator said when it refused. None is negative.
struct MemoryReading {
  size_t instruction = 0;  // that ran; its index in the schedule
  Bytes allocated;         // live in the process, for whomever
  Bytes
      before_step;  // of this, live before the step: parameters and the like, which no plan counts
  Bytes reserved;   // of the device, by the process's allocator; at least `allocated`
  Bytes asked;      // what was refused; 0: not known
  Bytes limit;      // that the allocator could reserve; of a GPU its memory; 0: not known
  Bytes rounding;   // that these together may be off; differences up to it are none
  // Live for the step when the instruction began, where that is known.
  std::optional<Bytes> held_before;
};

enum class MemoryCause : uint8_t { kWorkspace, kLiveBeside, kFragmentation, kElsewhere };
// "workspace", "live beside the plan", ...
const char* ToString(MemoryCause cause);

struct MemoryFinding {
  MemoryCause cause = MemoryCause::kElsewhere;
  MemoryReading reading;
  std::string what;      // the instruction, with its stage's name
  MemoryByUse planned;   // while it runs
  Bytes planned_before;  // held when it began
  Bytes planned_peak;    // of the schedule
  Bytes step;            // live for the step, what was asked for included
  Bytes beyond_plan;     // of this, what the plan has not; 0 if it is within
  Bytes in_pieces;       // reserved and not live
  // What of the allocator's limit, or of the device where that refused before the limit, is missing for
  // what was live before the step and the plan's peak beside it, or the step where that took more.
  Bytes missing;
};

// INVALID_ARGUMENT made by FieldError: there is no such instruction, a size is negative or more is
// allocated than reserved; and as TimelineOf has it. Cost of TimelineOf.
absl::StatusOr<MemoryFinding> FindMemoryCause(const LinkedProblem& linked, const Schedule& schedule,
                                              const MemoryReading& reading);

// A few lines for people: planned against actual at that instant, the cause and what helps.
std::string MemoryFindingText(const MemoryFinding& finding);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_MEMORY_FINDING_H_
