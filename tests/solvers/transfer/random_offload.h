// Random problems of offloading for the tests.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_RANDOM_OFFLOAD_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_RANDOM_OFFLOAD_H_

#include <random>
#include <string>
#include <vector>

#include "solvers/transfer/internal/trace_problem.h"
#include "solvers/transfer/offload_problem.h"

namespace stowage::testing {

struct RandomOffloadOptions {
  int max_size = 4;
  int max_need = 3;
  int max_time = 4;
  int max_latency = 0;
  int max_halvings = 0;     // of the bandwidth of a byte in a nanosecond, each way for itself
  bool fast_links = false;  // now and then two bytes in a nanosecond
  bool limited_host = false;
  bool full_duplex = false;
};

// With a memory between the least and the peak.
OffloadProblem RandomOffload(int ops, const RandomOffloadOptions& options, std::mt19937_64* rng);

// The same problem with something else.
OffloadProblem WithMemory(const OffloadProblem& problem, Bytes memory);
OffloadProblem WithLink(const OffloadProblem& problem, const TransferModel& link);

// All sets of activations, 2^n.
std::vector<OffloadSet> AllSets(const OffloadProblem& problem);

std::string Describe(const OffloadProblem& problem, const OffloadSet& set = {});

// Some of the activations that stand for tensors.
OffloadSet RandomSet(const TraceProblem& problem, std::mt19937_64* rng);

// Whether the last offload ends, and a prefetch starts, while one op runs.
bool OffloadsMeetPrefetches(const OffloadProblem& problem, const OffloadTimeline& timeline);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_RANDOM_OFFLOAD_H_
