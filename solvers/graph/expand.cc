#include "solvers/graph/expand.h"

#include <cstddef>

#include "solvers/plan/graph_liveness.h"

namespace stowage {
namespace {

// The positions first..end-1, in reverse for backwards.
void Append(Op op, int first, int end, Schedule* compute) {
  for (int k = first; k < end; ++k) {
    const int position = op == Op::kBackward ? end - 1 - (k - first) : k;
    compute->push_back({op, position + 1});
  }
}

}  // namespace

Schedule ExpandSchedule(const Graph& graph, const LinearizedGraph& linearized,
                        const Schedule& schedule) {
  const std::vector<int>& begin = linearized.stage_begin;
  Schedule compute;
  Append(Op::kForwardKeepAll, 0, begin.front(), &compute);
  for (const Instruction& i : schedule) {
    const size_t l = static_cast<size_t>(i.stage);
    if (l < 1 || l >= begin.size()) continue;  // a^0 and the loss have no vertices
    const int first = begin[l - 1], end = begin[l];
    if (i.op == Op::kForwardKeepNothing) {
      Append(Op::kForwardKeepInput, first, end, &compute);
    } else if (IsForward(i.op) || i.op == Op::kBackward) {
      Append(i.op, first, end, &compute);
    }
  }
  Append(Op::kBackward, 0, begin.front(), &compute);
  return WithDiscards(graph, compute);
}

}  // namespace stowage
