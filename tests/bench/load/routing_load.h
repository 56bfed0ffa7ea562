// Jobs of many networks on replicas that share a Redis, asked in turn and then by key: what routing saves.
#ifndef STOWAGE_TESTS_BENCH_LOAD_ROUTING_LOAD_H_
#define STOWAGE_TESTS_BENCH_LOAD_ROUTING_LOAD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

struct RoutingOptions {
  std::vector<std::string> stowaged;  // the command of each replica
  int replicas = 3;
  int networks = 200;
  int jobs = 4;                       // of each network, one after the other
  int ranks = 8;                      // of a job, which ask at once
  int stages = 50;                    // of a network
  std::function<void()> empty_store;  // the one that they share, before each way
};

// Prints for each way the solves, the leases for each of them, the time until a job's last rank has its plan, and what the replicas' memories
// hold. INTERNAL where a call fails, a network is not solved once, or asking by key does not hold less and take
// one lease for each.
absl::Status RunRouting(const RoutingOptions& options);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_ROUTING_LOAD_H_
