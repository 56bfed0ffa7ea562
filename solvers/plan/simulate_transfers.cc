#include "absl/strings/str_cat.h"
#include "solvers/plan/chain_replay.h"
#include "solvers/plan/simulate.h"
#include "solvers/plan/transfer_replay.h"

namespace stowage {
namespace {

// As TransferReplay wants it.
class MovableChain : public ChainReplay {
 protected:
  using ChainReplay::ChainReplay;

  int last() const { return chain_.length() + 1; }

  absl::Status CheckStage(const Instruction& i) const {
    const bool has_input =
        i.tensor == TensorKind::kActivation && (i.op == Op::kDiscard || IsTransfer(i.op));
    return i.stage < (has_input ? 0 : 1) || i.stage > last() ? NoSuchStage() : absl::OkStatus();
  }

  absl::Status CheckMoves(TensorKind tensor, int l) const {
    if (tensor == TensorKind::kSaved || l <= chain_.length()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the activations that move are 0 to ", chain_.length()));
  }

  template <class Visit>
  static void VisitChanges(const Instruction& i, const Visit& visit) {
    constexpr TensorKind kActivation = TensorKind::kActivation;
    constexpr TensorKind kSaved = TensorKind::kSaved;
    const int l = i.stage;
    switch (i.op) {
      case Op::kForwardKeepAll:
        return visit(TensorChange::kMade, kSaved, l);
      case Op::kForwardKeepInput:
        return visit(TensorChange::kMade, kActivation, l);
      case Op::kForwardKeepNothing:
        visit(TensorChange::kMade, kActivation, l);
        return visit(TensorChange::kDropped, kActivation, l - 1);
      case Op::kBackward:
        visit(TensorChange::kDropped, kSaved, l);
        return visit(TensorChange::kDropped, kActivation, l - 1);
      case Op::kReduce:
        visit(TensorChange::kMade, kActivation, l);
        return visit(TensorChange::kDropped, kSaved, l);
      case Op::kDiscard:
        return visit(TensorChange::kDropped, i.tensor, l);
      default:
        return;
    }
  }
};

}  // namespace

absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    const TransferModel& transfers,
                                    std::vector<TimelinePoint>* timeline) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return TransferReplay<MovableChain>(chain, transfers).Run(schedule, timeline);
}

}  // namespace stowage
