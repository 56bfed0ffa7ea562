#include "tests/bench/gpu/selective_schedule.h"

#include <cstddef>

#include "solvers/schedule/graph_liveness.h"

namespace stowage {
namespace {

bool IsDear(OpKind kind) {
  return kind == OpKind::kConv2d || kind == OpKind::kLinear || kind == OpKind::kMatmul ||
         kind == OpKind::kAttention;
}

}  // namespace

Schedule SelectiveSchedule(const Network& network, const Graph& graph) {
  const auto runs_again = [&](size_t op) {
    return !IsDear(network.ops[op].kind) && Recomputable(graph.vertex(static_cast<int>(op)));
  };
  // Instructions count from 1.
  const auto number = [](size_t op) { return static_cast<int>(op) + 1; };
  Schedule compute;
  for (size_t op = 0; op < network.ops.size(); ++op) compute.push_back(ForwardSave(number(op)));
  for (size_t block = network.stages.size(); block-- > 0;) {
    const NetworkStage& stage = network.stages[block];
    const bool is_loss = block + 1 == network.stages.size();
    for (size_t op = stage.first_op; op < stage.end_op && !is_loss; ++op) {
      if (runs_again(op)) compute.push_back(ForwardSave(number(op)));
    }
    for (size_t op = stage.end_op; op-- > stage.first_op;) compute.push_back(Backward(number(op)));
  }
  compute.push_back(Backward(number(0)));
  return WithDiscards(graph, compute);
}

}  // namespace stowage
