#include "solvers/offload/compute_trace.h"

#include <cstddef>
#include <vector>

#include "solvers/offload/part_groups.h"
#include "solvers/offload/tensor_lives.h"
#include "solvers/plan/simulate.h"

namespace stowage {
namespace {

class ChainWalk {
 public:
  ChainWalk(const Chain& chain, Granularity granularity, TensorLives* lives)
      : chain_(chain), lives_(*lives), groups_(static_cast<size_t>(chain.length()) + 2) {
    Make(TensorKind::kActivation, 0, -1);
    if (granularity == Granularity::kWhole) return;
    for (int l = 1; l <= chain.length() + 1; ++l) GroupsAt(l) = PartGroupsOf(chain.stage(l));
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
        if (i.op == Op::kForwardKeepNothing) lives_.Drop(TensorKind::kActivation, l - 1, step);
        break;
      case Op::kBackward:
        ReadInput(l, step);
        lives_.Drop(TensorKind::kSaved, l, step);
        if (lives_.Held(TensorKind::kActivation, l - 1)) {
          lives_.Drop(TensorKind::kActivation, l - 1, step);
        }
        break;
      case Op::kReduce:
        lives_.Drop(TensorKind::kSaved, l, step);
        Make(TensorKind::kActivation, l, step);
        break;
      default:
        lives_.Drop(i.tensor, l, step);
    }
  }

 private:
  void Make(TensorKind kind, int l, int step) {
    if (kind == TensorKind::kSaved && !GroupsAt(l).empty()) {
      return lives_.MakeInGroups(l, GroupsAt(l), step);
    }
    const Bytes bytes = kind == TensorKind::kSaved ? chain_.stage(l).saved : chain_.activation(l);
    lives_.Make(kind, l, bytes, step);
  }

  void ReadInput(int l, int step) {
    const bool plain = lives_.Held(TensorKind::kActivation, l - 1);
    lives_.Read(plain ? TensorKind::kActivation : TensorKind::kSaved, l - 1, step);
  }

  std::vector<PartGroup>& GroupsAt(int l) { return groups_[static_cast<size_t>(l)]; }

  const Chain& chain_;
  TensorLives& lives_;
  std::vector<std::vector<PartGroup>> groups_;  // by stage; empty: it moves as a whole
};

}  // namespace

absl::StatusOr<ComputeTrace> TraceOf(const Chain& chain, const Schedule& compute,
                                     Granularity granularity) {
  absl::Status status = CheckNoCommunication(compute);
  if (!status.ok()) return status;
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> simulation = Simulate(chain, compute, &timeline);
  if (!simulation.ok()) return simulation.status();
  TensorLives lives(compute, timeline, chain.length() + 1);
  ChainWalk walk(chain, granularity, &lives);
  for (size_t step = 0; step < compute.size(); ++step) {
    walk.Step(static_cast<int>(step), compute[step]);
  }
  return lives.Finish();
}

}  // namespace stowage
