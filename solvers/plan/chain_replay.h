// The replay of a chain without transfers. Internal to simulate.h, which has its rules; those of
// transfers stand upon it (simulate_transfers.cc).
#ifndef STOWAGE_SOLVERS_PLAN_CHAIN_REPLAY_H_
#define STOWAGE_SOLVERS_PLAN_CHAIN_REPLAY_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/chain.h"
#include "solvers/plan/replay.h"
#include "solvers/plan/tensor_uses.h"

namespace stowage {

// What is held at one moment of a replay. Solvers replay millions of instructions: each op has one
// caller and is inlined there, which compilers do not do unasked in a class of a header (a fifth of
// the time).
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
    const int last = chain_.length() + 1;
    const bool input_allowed = i.op == Op::kDiscard && i.tensor == TensorKind::kActivation;
    if (i.stage < (input_allowed ? 0 : 1) || i.stage > last) return NoSuchStage();
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

  [[gnu::always_inline]] absl::Status RunReduce(int l) {
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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_CHAIN_REPLAY_H_
