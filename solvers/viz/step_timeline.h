// When each instruction of a schedule runs, on which stream, and what memory holds meanwhile by what it
// is for: what pictures of a plan are drawn from.
//
// Times and sums are the evaluator's (solvers/schedule/evaluator.h), the shares are those of
// its blocks (schedule_blocks.h): at every time they add up to the memory that the evaluator says.
//
//   use            of a chain                          of a graph
//   saved          saved l, its output included        extras
//   activations    a^l, also what a reduce left        tensors, one per storage
//   gradients      delta^l                             gradients, one per storage
//   copies         any of these from the start of a copy to its wait
//   communication  what ops on the communication stream keep until compute waits for them
//   workspace      what an op takes beyond what it leaves behind (o_f+, o_f0, o_b)
#ifndef STOWAGE_SOLVERS_VIZ_STEP_TIMELINE_H_
#define STOWAGE_SOLVERS_VIZ_STEP_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// From the bottom of a picture to its top: what lives long first.
enum class MemoryUse : uint8_t {
  kSaved,
  kActivations,
  kGradients,
  kCopies,
  kCommunication,
  kWorkspace
};
inline constexpr size_t kMemoryUses = 6;
// "saved tensors", "copies in flight", ...
const char* ToString(MemoryUse use);

struct MemoryByUse {
  std::array<Bytes, kMemoryUses> bytes;

  Bytes& operator[](MemoryUse use) { return bytes[static_cast<size_t>(use)]; }
  Bytes operator[](MemoryUse use) const { return bytes[static_cast<size_t>(use)]; }
  Bytes total() const;

  friend bool operator==(const MemoryByUse& a, const MemoryByUse& b) { return a.bytes == b.bytes; }
};

// What an instruction is to somebody who looks at a step. A forward that is not its stage's first
// recomputes; discards take no time.
enum class StepWork : uint8_t {
  kForward,
  kRecompute,
  kBackward,
  kOffload,
  kPrefetch,
  kWait,
  kRelease
};
inline constexpr size_t kStepWorks = 7;
// "forward", "recompute", ...
const char* ToString(StepWork work);

struct TimelineEvent {
  Instruction instruction;
  StepWork work = StepWork::kForward;
  Nanos start;  // on its stream; of the start of a copy, the copy's
  Nanos end;
  // When the compute stream came to it and when it went on: what it changes in memory, it changes then.
  // Of the start of a copy that waits for a communication, `reached` is before that wait.
  Nanos reached;
  Nanos left;
  MemoryByUse running;  // from `reached` to `left`
  MemoryByUse held;     // from then on
  Bytes host;           // of host memory, afterwards
};

struct StepTimeline {
  std::vector<TimelineEvent> events;  // one per instruction, in order
  Simulation simulation;
};

// Of the tensor, or the part of one, that a transfer moves.
Bytes MovedBytes(const Problem& problem, const Instruction& transfer);

// INVALID_ARGUMENT as Simulate has it. O(instructions + stages or vertices + edges + blocks).
absl::StatusOr<StepTimeline> TimelineOf(const Instance& instance, const Schedule& schedule);

// Why a step ran out of memory: what was planned at the instruction that failed, beside what the allocator
// said, and which of the ways in which they can differ it was.
//
//   workspace      the instruction takes more than the profile says
//   live beside    more was live when it began than the plan says: somebody holds tensors
//   fragmentation  there was memory enough, but reserved and in pieces
//   elsewhere      all was as planned: the plan's memory is not there, others have it

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
absl::StatusOr<MemoryFinding> FindMemoryCause(const Instance& instance, const Schedule& schedule,
                                              const MemoryReading& reading);

// A few lines for people: planned against actual at that instant, the cause and what helps.
std::string MemoryFindingText(const MemoryFinding& finding);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_STEP_TIMELINE_H_
