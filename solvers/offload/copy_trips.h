// The copies of a chain schedule as round trips of tensors: what of their times the compute
// instructions settle, and what is free. Internal to loosen.h.
//
// Times are gaps: gap g is before compute instruction g, the last one after all of them. Compute
// instructions are all that are not transfers.
#ifndef STOWAGE_SOLVERS_OFFLOAD_COPY_TRIPS_H_
#define STOWAGE_SOLVERS_OFFLOAD_COPY_TRIPS_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// An offload, and the prefetch that brings the tensor back, if any does. In gaps:
//   made <= offload start;  free_from <= offload wait <= away_by
//   back_from <= prefetch wait <= back_by
struct CopyTrip {
  Instruction tensor;  // its kind, stage and part
  Bytes bytes;
  std::vector<size_t> copies;  // its instructions in the schedule, in order
  std::vector<int> after;      // the trips that have to be over before this one starts
  int made = 0;
  int free_from = 0;  // after the last that reads it before it has left
  int away_by;        // before the first that finds it away and would drop it otherwise
  int back_from = 0;  // after the last such
  int back_by;  // before the first that reads it; beyond the last gap if it does not come back
  int dropped;  // the instruction that drops it on the host; beyond all if none does
  bool returns = false;
};

struct CopyTrips {
  Schedule compute;
  std::vector<Nanos> time;      // of each compute instruction
  std::vector<Bytes> need;      // while it runs and after it, if all are away for as long as can be
  std::vector<CopyTrip> trips;  // in the order of their offload starts
};

// INVALID_ARGUMENT as Simulate, and if part of the schedule communicates beside compute. O(instructions + stages + parts).
absl::StatusOr<CopyTrips> FindCopyTrips(const Chain& chain, const Schedule& schedule,
                                        const TransferModel& transfers);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_COPY_TRIPS_H_
