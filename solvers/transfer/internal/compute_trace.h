// Which of a stage's saved tensors go to the host together, where they need not all go at once.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_COMPUTE_TRACE_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_COMPUTE_TRACE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

struct PartGroup {
  std::vector<int> parts;  // of the stage, ascending
  Bytes bytes;
};

// Neighbours in the order of saving, until a group has an eighth of what the stage saves, so that
// there are at most eight. What is less than a hundredth of an eighth is in none: it would cost a
// copy and stays on the device. The last part, which has the output, is a group of its own, the last
// one, and always there. Empty where the stage does not list its saved tensors. O(parts).
std::vector<PartGroup> PartGroupsOf(const Stage& stage);

// Whether any stage lists its saved tensors.
bool HasParts(const Chain& chain);

// A schedule without transfers, with whatever it recomputes, as transfers see it: what each
// instruction takes, and which tensors lie idle around the forward/backward boundary.
//
// Bytes, nanoseconds. Immutable by convention, hence safe to share between threads.

struct ComputeTrace {
  struct Step {
    Nanos time;
    Bytes need;  // device memory while it runs and after it, with nothing on the host
  };

  // Held from before the boundary to after it, and not read in between: it may be on the host.
  struct Tensor {
    TensorKind kind = TensorKind::kActivation;
    int stage = 0;
    Bytes bytes;
    int made = -1;      // the step that makes it, or writes it last; -1: held from the start
    int last_read = 0;  // the last step before the boundary that reads it; `made` if none does
    int next_read = 0;  // the first step from the boundary on that reads or drops it
    int dropped = 0;    // the step that drops it; the number of steps if none does
    std::vector<int> parts = {};  // of the stage (Stage::parts) that it is made of; empty: all
  };

  std::vector<Step> steps;      // one per instruction
  int first_backward = 0;       // a step: the boundary
  std::vector<Tensor> tensors;  // in the order in which they may leave: by last_read, then those
                                // that come back later first; only such as have bytes, and a step
                                // between the two reads
};

// What goes to the host at once.
enum class Granularity {
  kWhole,  // a plain activation, or all that a stage saves
  kParts,  // a plain activation, or a few of a stage's saved tensors (PartGroups)
};

// Of a schedule without copies; the link does not matter, nor, of a graph, the granularity. INVALID_ARGUMENT if the
// evaluator refuses the schedule, or part of it communicates beside compute. O(instructions + L log L + parts); of a
// graph, O(V log V + E + the inputs of all instructions).
absl::StatusOr<ComputeTrace> TraceOf(const Instance& instance, const Schedule& compute,
                                     Granularity granularity = Granularity::kWhole);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_COMPUTE_TRACE_H_
