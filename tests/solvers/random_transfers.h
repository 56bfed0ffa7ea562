// Random links to host memory, and random transfers in schedules.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_TRANSFERS_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_TRANSFERS_H_

#include <random>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

// Copies of a few bytes take from one to some tens of nanoseconds; both duplex modes, with and
// without latency. Host memory for everything.
TransferModel RandomTransferModel(std::mt19937_64* rng);

// A valid schedule with transfers: `schedule`, which is valid, and offloads of what it makes, most
// with a prefetch, the others of what is discarded on the host; of parts where a stage has some. Some
// get none.
Schedule WithRandomTransfers(const Chain& chain, const Schedule& schedule,
                             const TransferModel& transfers, std::mt19937_64* rng);
Schedule WithRandomTransfers(const Graph& graph, const Schedule& schedule,
                             const TransferModel& transfers, std::mt19937_64* rng);

// One change of one instruction, or of the order of two; `way` is in 0..kWaysToBreak-1.
constexpr int kWaysToBreak = 7;
Schedule Broken(Schedule schedule, int way, std::mt19937_64* rng);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_TRANSFERS_H_
