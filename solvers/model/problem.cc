#include "solvers/model/problem.h"

#include <algorithm>
#include <type_traits>
#include <variant>

namespace stowage {
namespace {

// What stages and vertices have in common.
template <class Step>
bool StepDominates(const Step& larger, const Step& smaller) {
  return larger.op_kind == smaller.op_kind && larger.random == smaller.random &&
         larger.stateful == smaller.stateful && larger.collective == smaller.collective &&
         larger.must_keep == smaller.must_keep && larger.output >= smaller.output &&
         larger.output_gradient >= smaller.output_gradient &&
         larger.forward_saving_overhead >= smaller.forward_saving_overhead &&
         larger.forward_overhead >= smaller.forward_overhead &&
         larger.backward_overhead >= smaller.backward_overhead &&
         (!larger.stops() ||
          (smaller.stops() && larger.stopped_overhead() >= smaller.stopped_overhead()));
}

bool StageDominates(const Stage& larger, const Stage& smaller) {
  if (!StepDominates(larger, smaller) || larger.saved < smaller.saved ||
      larger.stopped_saved() < smaller.stopped_saved()) {
    return false;
  }
  if (larger.parts() != smaller.parts()) return false;
  const auto no_less = [](Bytes a, Bytes b) { return a >= b; };
  if (!std::equal(larger.saved_tensors.begin(), larger.saved_tensors.end(),
                  smaller.saved_tensors.begin(), no_less)) {
    return false;
  }
  const int rest = larger.parts();
  return rest == 0 || larger.part(rest) >= smaller.part(rest);
}

bool VertexDominates(const Vertex& larger, const Vertex& smaller) {
  const auto same_input = [](const GraphInput& a, const GraphInput& b) {
    return a.vertex == b.vertex && a.backward_needs == b.backward_needs;
  };
  return StepDominates(larger, smaller) && larger.extra_saved >= smaller.extra_saved &&
         (larger.extra_saved > Bytes(0)) == (smaller.extra_saved > Bytes(0)) &&
         larger.backward_needs_output == smaller.backward_needs_output &&
         larger.alias == smaller.alias && larger.result == smaller.result &&
         larger.linear_multi_input == smaller.linear_multi_input &&
         std::equal(larger.inputs.begin(), larger.inputs.end(), smaller.inputs.begin(),
                    smaller.inputs.end(), same_input);
}

bool KindDominates(const Chain& larger, const Chain& smaller) {
  if (larger.length() != smaller.length() || larger.activation(0) < smaller.activation(0) ||
      larger.gradient(0) < smaller.gradient(0)) {
    return false;
  }
  for (int l = 1; l <= larger.length() + 1; ++l) {
    if (!StageDominates(larger.stage(l), smaller.stage(l))) return false;
  }
  return true;
}

bool KindDominates(const Graph& larger, const Graph& smaller) {
  if (larger.size() != smaller.size() || larger.has_backwards() != smaller.has_backwards()) {
    return false;
  }
  for (int p = 0; p < larger.size(); ++p) {
    if (!VertexDominates(larger.vertex(p), smaller.vertex(p))) return false;
  }
  return true;
}

}  // namespace

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

bool Dominates(const Problem& larger, const Problem& smaller) {
  if (larger.index() != smaller.index()) return false;
  return std::visit(
      [&smaller](const auto& kind) {
        return KindDominates(kind, std::get<std::decay_t<decltype(kind)>>(smaller));
      },
      larger);
}

}  // namespace stowage
