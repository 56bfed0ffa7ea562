// A schedule without transfers, with whatever it recomputes, as transfers see it: what each
// instruction takes, and which tensors lie idle around the turn from forwards to backwards.
//
// Bytes, nanoseconds. Immutable by convention, hence safe to share between threads.
#ifndef STOWAGE_SOLVERS_OFFLOAD_COMPUTE_TRACE_H_
#define STOWAGE_SOLVERS_OFFLOAD_COMPUTE_TRACE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/plan/schedule.h"

namespace stowage {

struct ComputeTrace {
  struct Step {
    Nanos time;
    Bytes need;  // device memory while it runs and after it, with nothing on the host
  };

  // Held from before the turn to after it, and not read in between: it may be on the host.
  struct Tensor {
    TensorKind kind = TensorKind::kActivation;
    int stage = 0;
    Bytes bytes;
    int made = -1;      // the step that makes it, or writes it last; -1: held from the start
    int last_read = 0;  // the last step before the turn that reads it; `made` if none does
    int next_read = 0;  // the first step from the turn on that reads or drops it
    int dropped = 0;    // the step that drops it; the number of steps if none does
    std::vector<int> parts = {};  // of the stage (Stage::parts) that it is made of; empty: all
  };

  std::vector<Step> steps;      // one per instruction
  int turn = 0;                 // the first backward
  std::vector<Tensor> tensors;  // in the order in which they may leave: by last_read, then those
                                // that come back later first; only such as have bytes, and a step
                                // between the two reads
};

// What goes to the host at once.
enum class Granularity {
  kWhole,  // a plain activation, or all that a stage saves
  kParts,  // a plain activation, or a few of a stage's saved tensors (part_groups.h)
};

// INVALID_ARGUMENT if the referee refuses the schedule, or part of it communicates beside compute. O(instructions + L log L + parts). Of a
// graph, O(V log V + E + the inputs of all instructions).
absl::StatusOr<ComputeTrace> TraceOf(const Chain& chain, const Schedule& compute,
                                     Granularity granularity = Granularity::kWhole);
absl::StatusOr<ComputeTrace> TraceOf(const Graph& graph, const Schedule& compute);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_COMPUTE_TRACE_H_
