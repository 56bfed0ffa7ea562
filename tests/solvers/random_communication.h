// Random communications in schedules.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_COMMUNICATION_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_COMMUNICATION_H_

#include <random>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

// The chain with some of the stages collective that `schedule` runs forward once, so that it stays
// valid.
Chain WithCollectives(const Chain& chain, const Schedule& schedule, std::mt19937_64* rng);

// Puts most of what may be there on the communication stream.
Schedule WithRandomCommunication(const Chain& chain, Schedule schedule, std::mt19937_64* rng);
Schedule WithRandomCommunication(const Graph& graph, Schedule schedule, std::mt19937_64* rng);

// Puts all of it back.
Schedule WithoutCommunication(Schedule schedule);

// One instruction changes to the communication stream, or from there to its own.
Schedule WithOtherStream(Schedule schedule, std::mt19937_64* rng);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_COMMUNICATION_H_
