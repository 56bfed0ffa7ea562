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
