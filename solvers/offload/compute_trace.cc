#include "solvers/offload/compute_trace.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "solvers/plan/simulate.h"

namespace stowage {
namespace {

// Follows the tensors of a schedule that the referee has accepted.
class ChainWalk {
 public:
  ChainWalk(const Chain& chain, ComputeTrace* trace)
      : chain_(chain), trace_(*trace), lives_(2 * static_cast<size_t>(chain.length() + 2)) {
    Make(TensorKind::kActivation, 0, -1);
  }

  void Step(int step, const Instruction& i) {
    const int l = i.stage;
    switch (i.op) {
      case Op::kForwardKeepAll:
        ReadInput(l, step);
        Make(TensorKind::kSaved, l, step);
        break;
      case Op::kForwardKeepInput:
      case Op::kForwardKeepNothing:
        ReadInput(l, step);
        Make(TensorKind::kActivation, l, step);
        if (i.op == Op::kForwardKeepNothing) Drop(TensorKind::kActivation, l - 1, step);
        break;
      case Op::kBackward:
        ReadInput(l, step);
        Drop(TensorKind::kSaved, l, step);
        if (Of(TensorKind::kActivation, l - 1).held) Drop(TensorKind::kActivation, l - 1, step);
        break;
      case Op::kReduce:
        Drop(TensorKind::kSaved, l, step);
        Make(TensorKind::kActivation, l, step);
        break;
      default:
        Drop(i.tensor, l, step);
    }
  }

 private:
  struct Life {
    bool held = false;
    bool crosses = false;  // made before the turn and read after it
    ComputeTrace::Tensor tensor;
  };

  Life& Of(TensorKind kind, int l) {
    return lives_[2 * static_cast<size_t>(l) + static_cast<size_t>(kind)];
  }

  void Make(TensorKind kind, int l, int step) {
    const Bytes bytes = kind == TensorKind::kSaved ? chain_.stage(l).saved : chain_.activation(l);
    Of(kind, l) = {true, false, {kind, l, bytes, step, step, 0, 0}};
  }

  void ReadInput(int l, int step) {
    const bool plain = Of(TensorKind::kActivation, l - 1).held;
    Read(&Of(plain ? TensorKind::kActivation : TensorKind::kSaved, l - 1), step);
  }

  void Read(Life* life, int step) {
    if (step < trace_.turn) {
      life->tensor.last_read = step;
    } else if (life->tensor.made < trace_.turn && !life->crosses) {
      life->crosses = true;
      life->tensor.next_read = step;
    }
  }

  void Drop(TensorKind kind, int l, int step) {
    Life& life = Of(kind, l);
    Read(&life, step);
    life.held = false;
    if (!life.crosses) return;
    life.tensor.dropped = step;
    trace_.tensors.push_back(life.tensor);
  }

  const Chain& chain_;
  ComputeTrace& trace_;
  std::vector<Life> lives_;
};

}  // namespace

void SortTensors(ComputeTrace* trace) {
  std::vector<ComputeTrace::Tensor>& tensors = trace->tensors;
  const auto useless = [](const ComputeTrace::Tensor& t) {
    return t.bytes == Bytes(0) || t.next_read <= t.last_read + 1;
  };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), useless), tensors.end());
  std::sort(tensors.begin(), tensors.end(),
            [](const ComputeTrace::Tensor& a, const ComputeTrace::Tensor& b) {
              return std::tie(a.last_read, b.next_read, a.stage, a.kind) <
                     std::tie(b.last_read, a.next_read, b.stage, b.kind);
            });
}

absl::StatusOr<ComputeTrace> TraceOf(const Chain& chain, const Schedule& compute) {
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> simulation = Simulate(chain, compute, &timeline);
  if (!simulation.ok()) return simulation.status();
  ComputeTrace trace;
  trace.steps.reserve(timeline.size());
  for (const TimelinePoint& point : timeline) {
    trace.steps.push_back({point.end - point.start, std::max(point.running, point.held)});
  }
  const auto first = std::find_if(compute.begin(), compute.end(),
                                  [](const Instruction& i) { return i.op == Op::kBackward; });
  trace.turn = static_cast<int>(first - compute.begin());
  ChainWalk walk(chain, &trace);
  for (size_t step = 0; step < compute.size(); ++step) {
    walk.Step(static_cast<int>(step), compute[step]);
  }
  SortTensors(&trace);
  return trace;
}

}  // namespace stowage
