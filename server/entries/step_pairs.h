// Walks the steps of one problem or of several of equal structure: the stages of a chain, the loss
// included, or the vertices of a graph. Both have the same costs under the same names.
#ifndef STOWAGE_SERVER_ENTRIES_STEP_PAIRS_H_
#define STOWAGE_SERVER_ENTRIES_STEP_PAIRS_H_

#include <variant>

#include "solvers/model/problem.h"

namespace stowage {

// Stages and the loss, or vertices.
inline int StepCount(const Chain& chain) { return chain.length() + 1; }
inline int StepCount(const Graph& graph) { return graph.size(); }
inline int StepCount(const Problem& problem) {
  return std::visit([](const auto& kind) { return StepCount(kind); }, problem);
}

inline const Stage& StepAt(const Chain& chain, int i) { return chain.stage(i + 1); }
inline const Vertex& StepAt(const Graph& graph, int i) { return graph.vertex(i); }

template <class Function>
void ForEachStep(const Problem& problem, const Function& function) {
  const int count = StepCount(problem);
  std::visit(
      [count, &function](const auto& kind) {
        for (int i = 0; i < count; ++i) function(StepAt(kind, i));
      },
      problem);
}

// Whether `same` says so of every pair; false where kind or size differ.
template <class Same>
bool AllSteps(const Problem& a, const Problem& b, const Same& same) {
  if (a.index() != b.index() || StepCount(a) != StepCount(b)) return false;
  const int count = StepCount(a);
  return std::visit(
      [count, &b, &same](const auto& x) {
        const auto& y = std::get<std::decay_t<decltype(x)>>(b);
        for (int i = 0; i < count; ++i) {
          if (!same(StepAt(x, i), StepAt(y, i))) return false;
        }
        return true;
      },
      a);
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_STEP_PAIRS_H_
