#include "solvers/plan/simulate.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "solvers/plan/host_link.h"
#include "solvers/plan/replay.h"

namespace stowage {
namespace {

std::string Name(TensorKind tensor, int l) {
  return absl::StrCat(tensor == TensorKind::kSaved ? "saved " : "activation ", l);
}

// What is held at one moment of a replay.
class ChainReplay : public Replay {
 public:
  explicit ChainReplay(const Chain& chain)
      : chain_(chain),
        plain_(static_cast<size_t>(chain.length()) + 2, false),
        saved_(plain_.size(), false),
        forwards_(plain_.size(), 0),
        gradient_(chain.length() + 1) {
    plain_[0] = true;
    held_ = chain.activation(0) + chain.gradient(gradient_);
  }

 protected:
  absl::Status Finish() const override {
    if (gradient_ == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the schedule ends before backward ", gradient_));
  }

  absl::Status Dispatch(const Instruction& i) override {
    if (!HasStage(i)) return NoSuchStage();
    switch (i.op) {
      case Op::kForwardKeepAll:
      case Op::kForwardKeepInput:
      case Op::kForwardKeepNothing:
        return Forward(i.op, i.stage);
      case Op::kBackward:
        return RunBackward(i.stage);
      case Op::kDiscard:
        return RunDiscard(i.tensor, i.stage);
      case Op::kReduce:
        return RunReduce(i.stage);
      case Op::kOffloadStart:
      case Op::kOffloadWait:
      case Op::kPrefetchStart:
      case Op::kPrefetchWait:
        break;
    }
    return absl::InvalidArgumentError("transfers need a transfer model");
  }

  bool HasStage(const Instruction& i) const {
    if (i.stage >= 1) return i.stage <= chain_.length() + 1;
    return i.stage == 0 && i.tensor == TensorKind::kActivation &&
           (i.op == Op::kDiscard || IsTransfer(i.op));
  }

  absl::Status NoSuchStage() const {
    return absl::InvalidArgumentError(
        absl::StrCat("the chain's stages are 1 to ", chain_.length() + 1));
  }

  bool Held(TensorKind tensor, int l) const {
    return tensor == TensorKind::kSaved ? Saved(l) : Plain(l);
  }

  Bytes Size(TensorKind tensor, int l) const {
    return tensor == TensorKind::kSaved ? chain_.stage(l).saved : chain_.activation(l);
  }

  // What arrives has its bytes in held_ already.
  void Arrive(TensorKind tensor, int l) {
    (tensor == TensorKind::kSaved ? saved_ : plain_)[static_cast<size_t>(l)] = true;
  }

  void Drop(TensorKind tensor, int l) {
    tensor == TensorKind::kSaved ? DropSaved(l) : DropPlain(l);
  }

  const Chain& chain_;

 private:
  bool Plain(int l) const { return plain_[static_cast<size_t>(l)]; }
  bool Saved(int l) const { return saved_[static_cast<size_t>(l)]; }

  absl::Status Forward(Op op, int l) {
    const Stage& stage = chain_.stage(l);
    if (op == Op::kForwardKeepNothing ? !Plain(l - 1) : !(Plain(l - 1) || Saved(l - 1))) {
      return absl::InvalidArgumentError(
          absl::StrCat("its input, activation ", l - 1, ", is not held"));
    }
    const bool saving = op == Op::kForwardKeepAll;
    if (saving ? Saved(l) : Plain(l)) {
      return absl::InvalidArgumentError("its result is held already");
    }
    int& runs = forwards_[static_cast<size_t>(l)];
    if (runs > 0 && !stage.recomputable()) {
      return absl::InvalidArgumentError("the stage must not be recomputed");
    }
    const Bytes made = saving ? stage.saved : stage.output;
    running_ = held_ + made + (saving ? stage.forward_saving_overhead : stage.forward_overhead);
    held_ += made;
    (saving ? saved_ : plain_)[static_cast<size_t>(l)] = true;
    if (op == Op::kForwardKeepNothing) DropPlain(l - 1);
    AddForward(stage.forward_time, runs++ > 0);
    return absl::OkStatus();
  }

  absl::Status RunBackward(int l) {
    if (gradient_ != l) {
      return absl::InvalidArgumentError(gradient_ == 0
                                            ? std::string("all backwards have run")
                                            : absl::StrCat("the next backward is ", gradient_));
    }
    if (!Saved(l)) return absl::InvalidArgumentError("its saved tensors are not held");
    if (!Plain(l - 1) && !Saved(l - 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat("its input, activation ", l - 1, ", is not held"));
    }
    running_ = held_ + chain_.stage(l).backward_overhead;
    held_ += chain_.gradient(l - 1);
    held_ -= chain_.gradient(l);
    DropSaved(l);
    if (Plain(l - 1)) DropPlain(l - 1);
    gradient_ = l - 1;
    result_.makespan += chain_.stage(l).backward_time;
    return absl::OkStatus();
  }

  absl::Status RunDiscard(TensorKind tensor, int l) {
    if (!Held(tensor, l)) return absl::InvalidArgumentError("the tensor is not held");
    Drop(tensor, l);
    return absl::OkStatus();
  }

  absl::Status RunReduce(int l) {
    if (!Saved(l)) return absl::InvalidArgumentError("its saved tensors are not held");
    if (Plain(l)) return absl::InvalidArgumentError("its plain output is held already");
    DropSaved(l);
    plain_[static_cast<size_t>(l)] = true;
    held_ += chain_.activation(l);
    return absl::OkStatus();
  }

  void DropPlain(int l) {
    plain_[static_cast<size_t>(l)] = false;
    held_ -= chain_.activation(l);
  }

  void DropSaved(int l) {
    saved_[static_cast<size_t>(l)] = false;
    held_ -= chain_.stage(l).saved;
  }

  std::vector<bool> plain_;  // a^l is held
  std::vector<bool> saved_;  // saved l is held
  std::vector<int> forwards_;
  int gradient_;  // the gradient that is held: delta^l, l = gradient_
};

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
                                    std::vector<TimelinePoint>* timeline) {
  return ChainReplay(chain).Run(schedule, timeline);
}

absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    const TransferModel& transfers,
                                    std::vector<TimelinePoint>* timeline) {
  absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return TransferReplay(chain, transfers).Run(schedule, timeline);
}

}  // namespace stowage
