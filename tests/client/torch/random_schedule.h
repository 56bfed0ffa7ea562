// Random schedules that the evaluator accepts, of all the shapes that an executor must be able to
// carry out.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_RANDOM_SCHEDULE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_RANDOM_SCHEDULE_H_

#include <random>
#include <string>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// A random memory-persistent schedule: at each level keep all of a stage, or checkpoint and
// recompute.
Schedule RandomPersistentSchedule(const Chain& chain, std::mt19937* random);

// Inserts up to `count` random pairs of instructions that throw something away and make it again,
// or make something and throw it away: discards of plain and saved tensors, also while
// the graph of the next stage needs them.
Schedule Disturb(const Chain& chain, Schedule schedule, int count, std::mt19937* random);

// One instruction a line.
std::string Text(const Schedule& schedule);

// Everything runs without a graph first.
Schedule RecomputeAll(const Chain& chain);

// 8 GiB/s each way, and 1 GiB of host memory.
TransferModel FastLink(bool full_duplex);

// Inserts up to `count` random trips to the host and back, or to be discarded there, that the evaluator
// accepts on this link.
Schedule WithTrips(const Chain& chain, const TransferModel& link, const Schedule& schedule,
                   int count, std::mt19937* random);
Schedule WithTrips(const Graph& graph, const TransferModel& link, const Schedule& schedule,
                   int count, std::mt19937* random);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_RANDOM_SCHEDULE_H_
