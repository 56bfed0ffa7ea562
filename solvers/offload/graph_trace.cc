#include <cstddef>
#include <vector>

#include "solvers/offload/compute_trace.h"
#include "solvers/offload/tensor_lives.h"
#include "solvers/plan/graph_simulate.h"

namespace stowage {
namespace {

constexpr TensorKind kTensor = TensorKind::kActivation;
constexpr TensorKind kExtras = TensorKind::kSaved;

class GraphWalk {
 public:
  GraphWalk(const Graph& graph, TensorLives* lives) : graph_(graph), lives_(*lives) {}

  void Step(int step, const Instruction& i) {
    const int p = i.stage - 1;
    if (i.op == Op::kDiscard) {
      lives_.Drop(i.tensor, i.stage, step);
    } else if (i.op == Op::kBackward) {
      Backward(p, step);
    } else {
      Forward(i.op, p, step);
    }
  }

 private:
  // By the owner of the storage; views are in it.
  void Read(int position, int step) { lives_.Read(kTensor, graph_.storage(position) + 1, step); }

  void Forward(Op op, int p, int step) {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) Read(static_cast<int>(input.vertex), step);
    if (op == Op::kForwardKeepAll && v.extra_saved > Bytes(0)) {
      lives_.Make(kExtras, p + 1, v.extra_saved, step);
    }
    if (v.alias == AliasKind::kInPlace) {
      lives_.Write(kTensor, graph_.storage(p) + 1, step);
    } else if (v.alias == AliasKind::kNone && lives_.Held(kTensor, p + 1)) {
      Read(p, step);  // renews the extras beside its output, which has to be there for it
    } else if (v.alias == AliasKind::kNone) {
      lives_.Make(kTensor, p + 1, graph_.bytes(p), step);
    }
  }

  void Backward(int p, int step) {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) {
      if (input.backward_needs) Read(static_cast<int>(input.vertex), step);
    }
    if (v.backward_needs_output) Read(p, step);
    if (lives_.Held(kExtras, p + 1)) lives_.Drop(kExtras, p + 1, step);
  }

  const Graph& graph_;
  TensorLives& lives_;
};

}  // namespace

absl::StatusOr<ComputeTrace> TraceOf(const Graph& graph, const Schedule& compute) {
  absl::Status status = CheckNoCommunication(compute);
  if (!status.ok()) return status;
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> simulation = SimulateGraph(graph, compute, &timeline);
  if (!simulation.ok()) return simulation.status();
  TensorLives lives(compute, timeline, graph.size());
  GraphWalk walk(graph, &lives);
  for (size_t step = 0; step < compute.size(); ++step) {
    walk.Step(static_cast<int>(step), compute[step]);
  }
  return lives.Finish();
}

}  // namespace stowage
