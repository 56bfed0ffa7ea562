// What is planned: a chain, a graph or a compute DAG, on a device.
#ifndef STOWAGE_SOLVERS_MODEL_PROBLEM_H_
#define STOWAGE_SOLVERS_MODEL_PROBLEM_H_

#include <string>
#include <variant>

#include "solvers/model/chain.h"
#include "solvers/model/device.h"
#include "solvers/model/graph.h"

namespace stowage {

// Immutable, hence safe to share between threads. A compute DAG is a Graph without backwards.
using Problem = std::variant<Chain, Graph>;

enum class ProblemKind { kChain, kGraph, kDag };

ProblemKind KindOf(const Problem& problem);
// "chain", "graph", "compute DAG".
const char* ToString(ProblemKind kind);

// Sum of all forward and backward times: the step without a budget.
Nanos IdealTime(const Problem& problem);

// One network at two sizes: lengths of a sequence, or batches, in buckets.
//
// What is held at any time of a schedule is a sum of sizes, each counted in full or not at all. So a
// schedule of the larger problem is one of the smaller, within the larger one's peak, on the device
// and on the host, whatever the times and the link: a plan for a bucket serves all that is in it.
// Thread-safe.
//
// Whether the structures are equal but for sizes, and no size or overhead of `larger` is below that of
// `smaller`; of saved tensors that go singly, and the rest, each one. Whether a vertex has extras at
// all is structure: a schedule drops and renews them. Times and names do not count.
// O(size of the problem).
bool Dominates(const Problem& larger, const Problem& smaller);

enum class CostSource { kUnspecified, kMeasured, kModelled, kBytesOnly };

// A validated profile. Immutable by convention; copies share nothing.
struct Profile {
  std::string name;
  Device device;
  Problem problem;
  CostSource cost_source = CostSource::kUnspecified;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_PROBLEM_H_
