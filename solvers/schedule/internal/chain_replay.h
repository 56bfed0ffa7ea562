// The replays of a chain: without transfers, and with them, of saved tensors also part by part. Internal to the
// evaluator (../accounting.md has the rules).
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_CHAIN_REPLAY_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_CHAIN_REPLAY_H_

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/chain.h"
#include "solvers/model/units.h"
#include "solvers/schedule/internal/replay.h"
#include "solvers/schedule/internal/transfer_replay.h"

namespace stowage {

// The parts of saved tensors on the link to host memory: their numbers there, and which of them are not simply here.
// Of all stages. O(stages).
size_t CountParts(const Chain& chain);

class SavedParts {
 public:
  // Numbers the parts from `first` on. O(stages + parts).
  SavedParts(const Chain& chain, size_t first);

  // Part k in 1..parts() of saved l.
  size_t Number(int l, int k) const {
    return begin_[static_cast<size_t>(l)] + static_cast<size_t>(k) - 1;
  }
  int PartOf(int l, size_t number) const {
    return static_cast<int>(number - begin_[static_cast<size_t>(l)]) + 1;
  }
  Bytes bytes(size_t number) const { return bytes_[number - first_]; }
  // The number of the last part of saved l, which holds the output.
  size_t Rest(int l) const { return begin_[static_cast<size_t>(l) + 1] - 1; }

  // Notes that a part starts to leave, or is back or gone. O(log parts).
  void Leave(size_t number) { moved_.insert(number); }
  void Settle(size_t number) { moved_.erase(number); }
  // The numbers of saved l's parts that left and did not settle. O(log parts + their number).
  std::vector<size_t> Moved(int l) const;

 private:
  size_t first_;
  std::vector<size_t> begin_;  // by stage, the number of its first part; one more at the end
  std::vector<Bytes> bytes_;   // by number
  std::set<size_t> moved_;
};

// Without transfers.

// What is held at one time step of a replay. Solvers replay millions of instructions: each op has one
// caller and is inlined there, which compilers do not do unasked in a class of a header (a fifth of
// the time).
class ChainReplay : public Replay {
 public:
  explicit ChainReplay(const Chain& chain)
      : chain_(chain),
        plain_(static_cast<size_t>(chain.length()) + 2, false),
        saved_(plain_.size(), false),
        stopped_(plain_.size(), false),
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
    const int last = chain_.length() + 1;
    const bool input_allowed = i.op == Op::kDiscard && i.tensor == TensorKind::kActivation;
    if (i.stage < (input_allowed ? 0 : 1) || i.stage > last) return NoSuchStage();
    switch (i.op) {
      case Op::kForwardSave:
      case Op::kForwardNoSave:
      case Op::kForwardNoSaveFreeInput:
        return Forward(i.op, i.stage);
      case Op::kBackward:
        return RunBackward(i.stage);
      case Op::kDiscard:
        return RunDiscard(i.tensor, i.stage);
      case Op::kDropSavedKeepOutput:
        return RunDropSavedKeepOutput(i.stage);
      case Op::kOffloadStart:
      case Op::kOffloadWait:
      case Op::kPrefetchStart:
      case Op::kPrefetchWait:
        break;
    }
    return absl::InvalidArgumentError("transfers need a transfer model");
  }

  absl::Status CheckCollective(int l) const override {
    if (l < 1 || l > chain_.length() + 1) return NoSuchStage();
    if (chain_.stage(l).collective) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "only stages that are collective run on the communication stream");
  }

  TensorUses UsesNow(const Instruction& i) const override {
    const bool has_input = i.stage >= 1 && i.stage <= chain_.length() + 1;
    return UsesOf(chain_, i, has_input && Plain(i.stage - 1));
  }

  absl::Status NoSuchStage() const {
    return absl::InvalidArgumentError(
        absl::StrCat("the chain's stages are 1 to ", chain_.length() + 1));
  }

  // Whether saved l, which is held, was made by a recompute that stopped early: without the output.
  bool Stopped(int l) const { return stopped_[static_cast<size_t>(l)]; }

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

  // The same without its bytes.
  void HideSaved(int l) { saved_[static_cast<size_t>(l)] = false; }

  void Drop(TensorKind tensor, int l) {
    tensor == TensorKind::kSaved ? DropSaved(l) : DropPlain(l);
  }

  const Chain& chain_;

 private:
  bool Plain(int l) const { return plain_[static_cast<size_t>(l)]; }
  bool Saved(int l) const { return saved_[static_cast<size_t>(l)]; }

  [[gnu::always_inline]] absl::Status Forward(Op op, int l) {
    const Stage& stage = chain_.stage(l);
    if (op == Op::kForwardNoSaveFreeInput ? !Plain(l - 1) : !(Plain(l - 1) || Saved(l - 1))) {
      return absl::InvalidArgumentError(
          absl::StrCat("its input, activation ", l - 1, ", is not held"));
    }
    const bool saving = op == Op::kForwardSave;
    if (saving ? Saved(l) : Plain(l)) {
      return absl::InvalidArgumentError("its result is held already");
    }
    int& runs = forwards_[static_cast<size_t>(l)];
    if (runs > 0 && !stage.recomputable()) {
      return absl::InvalidArgumentError("the stage must not be recomputed");
    }
    const bool stops =
        saving && stage.stops() && runs > 0 && WhatFollowsNow() != AfterSaving::kOther;
    if (saving) stopped_[static_cast<size_t>(l)] = stops;
    const Bytes made = !saving ? stage.output : stops ? stage.stopped_saved() : stage.saved;
    running_ = held_ + made +
               (!saving ? stage.forward_overhead
                : stops ? stage.stopped_overhead()
                        : stage.forward_saving_overhead);
    held_ += made;
    (saving ? saved_ : plain_)[static_cast<size_t>(l)] = true;
    if (op == Op::kForwardNoSaveFreeInput) DropPlain(l - 1);
    AddForward(stops ? stage.stopped_time() : stage.forward_time, runs++ > 0);
    return absl::OkStatus();
  }

  [[gnu::always_inline]] absl::Status RunBackward(int l) {
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

  [[gnu::always_inline]] absl::Status RunDiscard(TensorKind tensor, int l) {
    if (!Held(tensor, l)) return absl::InvalidArgumentError("the tensor is not held");
    Drop(tensor, l);
    return absl::OkStatus();
  }

  [[gnu::always_inline]] absl::Status RunDropSavedKeepOutput(int l) {
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
    held_ -= Stopped(l) ? chain_.stage(l).stopped_saved() : chain_.stage(l).saved;
  }

  std::vector<bool> plain_;  // a^l is held
  std::vector<bool> saved_;  // saved l is held
  std::vector<bool> stopped_;
  std::vector<int> forwards_;
  int gradient_;  // the gradient that is held: delta^l, l = gradient_
};

// With transfers.

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
      case Op::kForwardSave:
        return visit(TensorChange::kMade, kSaved, l);
      case Op::kForwardNoSave:
        return visit(TensorChange::kMade, kActivation, l);
      case Op::kForwardNoSaveFreeInput:
        visit(TensorChange::kMade, kActivation, l);
        return visit(TensorChange::kDropped, kActivation, l - 1);
      case Op::kBackward:
        visit(TensorChange::kDropped, kSaved, l);
        return visit(TensorChange::kDropped, kActivation, l - 1);
      case Op::kDropSavedKeepOutput:
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
    if (i.op == Op::kDropSavedKeepOutput ? Held(kSaved, i.stage) : DiscardsSaved(i))
      DropOnHost(i.stage);
    return TransferReplay::Dispatch(i);
  }

 private:
  using State = LinkReplay::State;
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
    if (i.op == Op::kForwardSave || i.op == Op::kBackward || offloads) {
      return CheckPartsHere(i.stage);
    }
    if (i.op != Op::kDropSavedKeepOutput && !DiscardsSaved(i)) return absl::OkStatus();
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

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_CHAIN_REPLAY_H_
