// The replay of a chain with transfers, of saved tensors also part by part. Internal to simulate.h,
// which has the rules.
#ifndef STOWAGE_SOLVERS_PLAN_PART_REPLAY_H_
#define STOWAGE_SOLVERS_PLAN_PART_REPLAY_H_

#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/plan/chain_replay.h"
#include "solvers/plan/saved_parts.h"
#include "solvers/plan/transfer_replay.h"

namespace stowage {

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

// The same where parts of saved tensors may move, too.
class PartReplay : public TransferReplay<MovableChain> {
 public:
  PartReplay(const Chain& chain, const TransferModel& transfers)
      : TransferReplay(chain, transfers, CountParts(chain)),
        parts_(chain, Number(TensorKind::kActivation, last() + 1)) {
    moves_parts_ = true;
  }

 protected:
  // Whether the part, of a stage that has some, takes device memory.
  bool PartTakesMemory(int l, int k) const {
    const bool made = TakesMemory(kSaved, l) || link_.state(parts_.Rest(l)) != State::kNone;
    return made && link_.state(parts_.Number(l, k)) != State::kOnHost;
  }

  absl::Status Dispatch(const Instruction& i) override {
    absl::Status status = CheckStage(i);
    if (!status.ok()) return status;
    if (i.part != 0) return RunPart(i);
    status = CheckPartsAllow(i);
    if (!status.ok()) return status;
    if (i.op == Op::kReduce ? Held(kSaved, i.stage) : DiscardsSaved(i)) DropOnHost(i.stage);
    return TransferReplay::Dispatch(i);
  }

 private:
  using State = HostLink::State;
  static constexpr TensorKind kSaved = TensorKind::kSaved;

  absl::Status Finish() const override {
    absl::Status status = TransferReplay::Finish();
    for (int l = 1; status.ok() && l <= last(); ++l) {
      status = CheckPartsStand(l, "the schedule ends before the wait for it");
    }
    return status;
  }

  static bool DiscardsSaved(const Instruction& i) {
    return i.op == Op::kDiscard && i.tensor == kSaved;
  }

  absl::Status CheckPartsAllow(const Instruction& i) const {
    const bool offloads = i.op == Op::kOffloadStart && i.tensor == kSaved;
    if (i.op == Op::kForwardKeepAll || i.op == Op::kBackward || offloads) {
      return CheckPartsHere(i.stage);
    }
    if (i.op != Op::kReduce && !DiscardsSaved(i)) return absl::OkStatus();
    return CheckPartsStand(i.stage, "it is on its way");
  }

  // A transfer of a part.
  absl::Status RunPart(const Instruction& i) {
    if (i.stream != StreamOf(i.op)) return WrongStream(i.op);
    if (i.tensor != kSaved || i.part > chain_.stage(i.stage).parts()) return NoSuchPart();
    absl::Status status = RunCopy(i.op, i.stage, parts_.Number(i.stage, i.part));
    NoteLink();
    return status;
  }

  absl::Status RunCopy(Op op, int l, size_t number) {
    const Bytes bytes = parts_.bytes(number);
    switch (op) {
      case Op::kOffloadStart:
        return Offload(l, number);
      case Op::kOffloadWait:
        if (link_.state(number) != State::kLeaving) {
          return absl::InvalidArgumentError("its offload has not started");
        }
        held_ -= bytes;
        if (number == parts_.Rest(l)) HideSaved(l);
        break;
      case Op::kPrefetchStart:
        if (link_.state(number) != State::kOnHost) {
          return absl::InvalidArgumentError("the tensor is not on the host");
        }
        held_ += bytes;
        running_ = held_;
        return StartCopy(op, number, bytes);
      default:
        if (link_.state(number) != State::kComing) {
          return absl::InvalidArgumentError("its prefetch has not started");
        }
        Settle(l, number);
    }
    WaitUntil(link_.Wait(number, bytes));
    return absl::OkStatus();
  }

  absl::Status Offload(int l, size_t number) {
    const State state = link_.state(number);
    if (state == State::kLeaving) {
      return absl::InvalidArgumentError("its offload has started already");
    }
    if (!Made(l) || state != State::kNone) {
      return absl::InvalidArgumentError("the tensor is not held");
    }
    absl::Status status = CheckMayChange(TensorChange::kDropped, kSaved, l);
    if (status.ok()) status = StartCopy(Op::kOffloadStart, number, parts_.bytes(number));
    if (status.ok()) parts_.Leave(number);
    return status;
  }

  // Makes saved l whole, of which parts are on the host and none is on its way: what is about to be
  // dropped.
  void DropOnHost(int l) {
    for (const size_t number : parts_.Moved(l)) {
      link_.Drop(number, parts_.bytes(number));
      held_ += parts_.bytes(number);
      Settle(l, number);
    }
    NoteLink();
  }

  // The part is where it was made; its bytes are in held_ already.
  void Settle(int l, size_t number) {
    parts_.Settle(number);
    if (number == parts_.Rest(l)) Arrive(kSaved, l);
  }

  // Whether all of saved l is where it was made, as far as it moves in parts.
  absl::Status CheckPartsHere(int l) const {
    const std::vector<size_t> moved = parts_.Moved(l);
    if (moved.empty()) return absl::OkStatus();
    const bool leaves = link_.state(moved.front()) == State::kLeaving;
    return PartError(l, moved.front(),
                     leaves ? "it is on its way to the host" : "it is on the host");
  }

  // Whether no part of saved l is on its way.
  absl::Status CheckPartsStand(int l, const char* why) const {
    for (const size_t number : parts_.Moved(l)) {
      if (OnItsWay(number)) return PartError(l, number, why);
    }
    return absl::OkStatus();
  }

  absl::Status PartError(int l, size_t number, const char* why) const {
    return absl::InvalidArgumentError(
        absl::StrCat("part ", parts_.PartOf(l, number), " of saved ", l, ": ", why));
  }

  // Whether there is a saved l, in parts, that did not go as a whole.
  bool Made(int l) const { return Held(kSaved, l) || link_.state(parts_.Rest(l)) != State::kNone; }

  SavedParts parts_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_PART_REPLAY_H_
