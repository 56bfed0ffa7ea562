// Random schedules that the referee accepts, of all the shapes that an executor must be able to
// carry out.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_RANDOM_SCHEDULE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_RANDOM_SCHEDULE_H_

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// A random memory-persistent schedule: at each level keep all of a stage, or checkpoint and
// recompute.
Schedule RandomPersistentSchedule(const Chain& chain, std::mt19937* random);

// Inserts up to `count` random pairs of instructions that throw something away and make it again,
// or make something and throw it away: discards and reduces of plain and saved tensors, also while
// the graph of the next stage needs them.
Schedule Disturb(const Chain& chain, Schedule schedule, int count, std::mt19937* random);

// One instruction a line.
std::string Text(const Schedule& schedule);

// Everything runs without a graph first.
Schedule RecomputeAll(const Chain& chain);

// The starts of offloads of all tensors that the referee may let go: activations, saved tensors whole
// and in parts; of a graph what vertices own and their extras.
std::vector<Instruction> OffloadStarts(const Chain& chain);
std::vector<Instruction> OffloadStarts(const Graph& graph);

// Inserts up to `count` random trips to the host and back, or to be discarded there, that start as
// `starts` says. `accepted` is the referee's word on a schedule.
Schedule AddTrips(const std::vector<Instruction>& starts,
                  const std::function<bool(const Schedule&)>& accepted, Schedule schedule,
                  int count, std::mt19937* random);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_RANDOM_SCHEDULE_H_
