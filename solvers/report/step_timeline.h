// When each instruction of a schedule runs, on which stream, and what memory holds meanwhile by what it
// is for: what pictures of a plan are drawn from.
//
// Times and sums are the referee's (solvers/plan/simulate.h, graph_simulate.h), the shares are those of
// its blocks (schedule_blocks.h): at every moment they add up to the memory that the referee says.
//
//   use            of a chain                          of a graph
//   saved          saved l, its output included        extras
//   activations    a^l, also what a reduce left        tensors, one per storage
//   gradients      delta^l                             gradients, one per storage
//   copies         any of these from the start of a copy to its wait
//   communication  what ops on the communication stream keep until compute waits for them
//   workspace      what an op takes beyond what it leaves behind (o_f+, o_f0, o_b)
#ifndef STOWAGE_SOLVERS_REPORT_STEP_TIMELINE_H_
#define STOWAGE_SOLVERS_REPORT_STEP_TIMELINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

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
// recomputes; discards and reduces take no time.
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
absl::StatusOr<StepTimeline> TimelineOf(const LinkedProblem& linked, const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_STEP_TIMELINE_H_
