// One compute schedule, or plain training, offloaded by one strategy: the parts of the solvers of solvers/transfer
// one by one, for tests and benchmarks.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_OFFLOAD_FROM_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_OFFLOAD_FROM_H_

#include <optional>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"
#include "solvers/solver.h"
#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"
#include "solvers/transfer/strategies.h"

namespace stowage::testing {

// Plain training of a chain. Errors as for OffloadProblem::Create. O(L).
absl::StatusOr<OffloadProblem> MakeOffloadProblem(const Chain& chain, const TransferModel& link,
                                                  Bytes memory);

struct TransferSchedule {
  Schedule schedule;
  Simulation prediction;  // the evaluator's; peak within the memory
};

// The set that `strategy` chooses for the trace's problem, as a schedule of an instance with a link; without transfers
// if that fits. Nothing if the strategy finds no set. INVALID_ARGUMENT if the schedule is none, or has transfers, or as
// OffloadProblem::Create; CANCELLED, DEADLINE_EXCEEDED. Thread-safe. The first takes a trace of `compute`, to be made
// once for many memories; the second has, of a chain, the faster of both granularities (Granularity, in
// trace_problem.h), of whole tensors if they are alike.
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute,
                                                            const ComputeTrace& trace, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveContext& context);
absl::StatusOr<std::optional<TransferSchedule>> OffloadFrom(const Instance& instance,
                                                            const Schedule& compute, Bytes memory,
                                                            const OffloadStrategy& strategy,
                                                            const SolveContext& context);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_OFFLOAD_FROM_H_
