#include "solvers/model/problem.h"

namespace stowage {

ProblemKind KindOf(const Problem& problem) {
  const Graph* const graph = std::get_if<Graph>(&problem);
  if (graph == nullptr) return ProblemKind::kChain;
  return graph->has_backwards() ? ProblemKind::kGraph : ProblemKind::kDag;
}

const char* ToString(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kChain:
      return "chain";
    case ProblemKind::kGraph:
      return "graph";
    case ProblemKind::kDag:
      return "compute DAG";
  }
  return "";
}

Nanos IdealTime(const Problem& problem) {
  return std::visit([](const auto& kind) { return kind.ideal_time(); }, problem);
}

}  // namespace stowage
