#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "solvers/plan/chain_replay.h"
#include "solvers/plan/host_link.h"
#include "solvers/plan/simulate.h"

namespace stowage {
namespace {

std::string Name(TensorKind tensor, int l) {
  return absl::StrCat(tensor == TensorKind::kSaved ? "saved " : "activation ", l);
}

// The same where tensors may go to host memory and back.
class TransferReplay : public ChainReplay {
 public:
  TransferReplay(const Chain& chain, const TransferModel& transfers)
      : ChainReplay(chain), link_(transfers, 2 * static_cast<size_t>(chain.length() + 2)) {}

 private:
  absl::Status Finish() const override {
    absl::Status status = ChainReplay::Finish();
    for (int l = 0; status.ok() && l <= chain_.length() + 1; ++l) {
      for (const TensorKind tensor : {TensorKind::kActivation, TensorKind::kSaved}) {
        const HostLink::State state = StateOf(tensor, l);
        if (state != HostLink::State::kLeaving && state != HostLink::State::kComing) continue;
        status = absl::InvalidArgumentError(
            absl::StrCat("the schedule ends before the wait for ", Name(tensor, l)));
      }
    }
    return status;
  }

  absl::Status Dispatch(const Instruction& i) override {
    if (!HasStage(i)) return NoSuchStage();
    if (IsTransfer(i.op)) return RunTransfer(i);
    if (i.op == Op::kDiscard && StateOf(i.tensor, i.stage) == HostLink::State::kOnHost) {
      link_.Drop(Number(i.tensor, i.stage), Size(i.tensor, i.stage));
      host_ = link_.host();
      return absl::OkStatus();
    }
    absl::Status status = CheckTransfersAllow(i);
    return status.ok() ? ChainReplay::Dispatch(i) : status;
  }

  bool HasStage(const Instruction& i) const {
    if (i.stage >= 1) return i.stage <= chain_.length() + 1;
    return i.stage == 0 && i.tensor == TensorKind::kActivation &&
           (i.op == Op::kDiscard || IsTransfer(i.op));
  }

  absl::Status RunTransfer(const Instruction& i) {
    if (i.stream != StreamOf(i.op)) return WrongStream(i.op);
    if (i.tensor == TensorKind::kActivation && i.stage > chain_.length()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the activations that move are 0 to ", chain_.length()));
    }
    absl::Status status = RunCopy(i.op, i.tensor, i.stage);
    host_ = link_.host();
    result_.host_peak = std::max(result_.host_peak, host_);
    result_.sent = link_.sent();
    result_.fetched = link_.fetched();
    return status;
  }

  absl::Status RunCopy(Op op, TensorKind tensor, int l) {
    switch (op) {
      case Op::kOffloadStart:
        if (!Held(tensor, l)) return absl::InvalidArgumentError("the tensor is not held");
        if (Leaves(tensor, l)) return absl::InvalidArgumentError("its offload has started already");
        return StartCopy(op, tensor, l);
      case Op::kOffloadWait:
        if (!Leaves(tensor, l)) return absl::InvalidArgumentError("its offload has not started");
        Drop(tensor, l);
        break;
      case Op::kPrefetchStart:
        return Prefetch(tensor, l);
      default:
        if (StateOf(tensor, l) != HostLink::State::kComing) {
          return absl::InvalidArgumentError("its prefetch has not started");
        }
        Arrive(tensor, l);
    }
    WaitUntil(link_.Wait(Number(tensor, l), Size(tensor, l)));
    return absl::OkStatus();
  }

  absl::Status Prefetch(TensorKind tensor, int l) {
    if (StateOf(tensor, l) != HostLink::State::kOnHost) {
      return absl::InvalidArgumentError("the tensor is not on the host");
    }
    held_ += Size(tensor, l);
    running_ = held_;
    return StartCopy(Op::kPrefetchStart, tensor, l);
  }

  absl::Status StartCopy(Op op, TensorKind tensor, int l) {
    const absl::StatusOr<CopySpan> copy =
        link_.Start(StreamOf(op), Number(tensor, l), Size(tensor, l), result_.makespan);
    if (!copy.ok()) return copy.status();
    copy_ = *copy;
    return absl::OkStatus();
  }

  // Whether an op that is no transfer leaves alone what is on its way, or on the host.
  absl::Status CheckTransfersAllow(const Instruction& i) const {
    constexpr TensorKind kActivation = TensorKind::kActivation;
    constexpr TensorKind kSaved = TensorKind::kSaved;
    const int l = i.stage;
    switch (i.op) {
      case Op::kForwardKeepAll:
        return CheckMayMake(kSaved, l);
      case Op::kForwardKeepInput:
        return CheckMayMake(kActivation, l);
      case Op::kForwardKeepNothing:
        return First(CheckMayMake(kActivation, l), CheckMayDrop(kActivation, l - 1));
      case Op::kBackward:
        return First(CheckMayDrop(kSaved, l), CheckMayDrop(kActivation, l - 1));
      case Op::kReduce:
        return First(CheckMayMake(kActivation, l), CheckMayDrop(kSaved, l));
      case Op::kDiscard:
        return CheckMayDrop(i.tensor, l);
      default:
        return absl::OkStatus();
    }
  }

  static absl::Status First(absl::Status a, absl::Status b) { return a.ok() ? b : a; }

  absl::Status CheckMayMake(TensorKind tensor, int l) const {
    const HostLink::State state = StateOf(tensor, l);
    if (state != HostLink::State::kOnHost && state != HostLink::State::kComing) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(Name(tensor, l), " is on the host"));
  }

  absl::Status CheckMayDrop(TensorKind tensor, int l) const {
    if (!Leaves(tensor, l)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(Name(tensor, l), " is on its way to the host"));
  }

  // The tensor's number on the link.
  static size_t Number(TensorKind tensor, int l) {
    return 2 * static_cast<size_t>(l) + static_cast<size_t>(tensor);
  }

  HostLink::State StateOf(TensorKind tensor, int l) const { return link_.state(Number(tensor, l)); }

  bool Leaves(TensorKind tensor, int l) const {
    return StateOf(tensor, l) == HostLink::State::kLeaving;
  }

  HostLink link_;
};

}  // namespace

absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    const TransferModel& transfers,
                                    std::vector<TimelinePoint>* timeline) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return TransferReplay(chain, transfers).Run(schedule, timeline);
}

}  // namespace stowage
