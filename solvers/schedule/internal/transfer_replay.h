// A replay where tensors may also go to host memory and back. Internal to the evaluator
// (../accounting.md has the rules).
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_TRANSFER_REPLAY_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_TRANSFER_REPLAY_H_

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/internal/replay.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// What an op does to a tensor that may be on its way.
enum class TensorChange { kMade, kDropped };

// `Base` replays everything else, on a chain or on a graph, and knows its tensors by kind and stage:
//   int last() const                             the last stage; stages begin at 0 or above
//   absl::Status CheckStage(instruction) const   whether there is a tensor or an op of that name
//   absl::Status CheckMoves(kind, stage) const   whether the tensor, if there is one, may move
//   bool Held(kind, stage) const
//   Bytes Size(kind, stage) const
//   void Drop(kind, stage)
//   void Arrive(kind, stage)                     held again; its bytes are in held_ already
//   void VisitChanges(instruction, visit) const  visit(change, kind, stage): what the op, if valid,
//                                                would make or drop, or write over
template <class Base>
class TransferReplay : public Base {
 public:
  // `more`: tensors that only a subclass knows, with the numbers from Number(kActivation, last + 1)
  // on.
  template <class Problem>
  TransferReplay(const Problem& problem, const TransferModel& transfers, size_t more = 0)
      : Base(problem), link_(transfers, 2 * (static_cast<size_t>(this->last()) + 1) + more) {}

 protected:
  absl::Status Finish() const override {
    absl::Status status = Base::Finish();
    for (int l = 0; status.ok() && l <= this->last(); ++l) {
      for (const TensorKind tensor : {TensorKind::kActivation, TensorKind::kSaved}) {
        if (!OnItsWay(Number(tensor, l))) continue;
        status = absl::InvalidArgumentError(
            absl::StrCat("the schedule ends before the wait for ", Name(tensor, l)));
      }
    }
    return status;
  }

  absl::Status Dispatch(const Instruction& i) override {
    absl::Status status = this->CheckStage(i);
    if (!status.ok()) return status;
    if (IsTransfer(i.op)) return RunTransfer(i);
    if (i.op == Op::kDiscard && StateOf(i.tensor, i.stage) == LinkReplay::State::kOnHost) {
      link_.Drop(Number(i.tensor, i.stage), this->Size(i.tensor, i.stage));
      NoteLink();
      return absl::OkStatus();
    }
    this->VisitChanges(i, [this, &status](TensorChange change, TensorKind tensor, int l) {
      if (status.ok()) status = CheckMayChange(change, tensor, l);
    });
    return status.ok() ? Base::Dispatch(i) : status;
  }

  absl::Status RunTransfer(const Instruction& i) {
    if (i.stream != StreamOf(i.op)) return this->WrongStream(i.op);
    absl::Status status = this->CheckMoves(i.tensor, i.stage);
    if (status.ok()) status = RunCopy(i.op, i.tensor, i.stage);
    NoteLink();
    return status;
  }

  // After whatever changes what the link has.
  void NoteLink() {
    this->host_ = link_.host();
    this->result_.host_peak = std::max(this->result_.host_peak, this->host_);
    this->result_.offloaded = link_.offloaded();
    this->result_.prefetched = link_.prefetched();
  }

  absl::Status StartCopy(Op op, size_t number, Bytes bytes) {
    const absl::StatusOr<StreamSpan> copy =
        link_.Start(StreamOf(op), number, bytes, this->result_.makespan);
    if (!copy.ok()) return copy.status();
    this->beside_ = *copy;
    return absl::OkStatus();
  }

  bool OnItsWay(size_t number) const {
    const LinkReplay::State state = link_.state(number);
    return state == LinkReplay::State::kLeaving || state == LinkReplay::State::kComing;
  }

  // A tensor's number on the link.
  static size_t Number(TensorKind tensor, int l) {
    return 2 * static_cast<size_t>(l) + static_cast<size_t>(tensor);
  }

  LinkReplay::State StateOf(TensorKind tensor, int l) const {
    return link_.state(Number(tensor, l));
  }

  // Whether the tensor takes device memory: it is held, or on its way back.
  bool TakesMemory(TensorKind tensor, int l) const {
    return this->Held(tensor, l) || StateOf(tensor, l) == LinkReplay::State::kComing;
  }

  absl::Status CheckMayChange(TensorChange change, TensorKind tensor, int l) const {
    const LinkReplay::State state = StateOf(tensor, l);
    const bool away = state == LinkReplay::State::kOnHost || state == LinkReplay::State::kComing;
    if (change == TensorChange::kMade && away) {
      return absl::InvalidArgumentError(absl::StrCat(Name(tensor, l), " is on the host"));
    }
    if (change == TensorChange::kDropped && state == LinkReplay::State::kLeaving) {
      return absl::InvalidArgumentError(
          absl::StrCat(Name(tensor, l), " is on its way to the host"));
    }
    return absl::OkStatus();
  }

  LinkReplay link_;

 private:
  absl::Status RunCopy(Op op, TensorKind tensor, int l) {
    switch (op) {
      case Op::kOffloadStart:
        if (!this->Held(tensor, l)) return absl::InvalidArgumentError("the tensor is not held");
        if (Leaves(tensor, l)) return absl::InvalidArgumentError("its offload has started already");
        return StartCopy(op, Number(tensor, l), this->Size(tensor, l));
      case Op::kOffloadWait:
        if (!Leaves(tensor, l)) return absl::InvalidArgumentError("its offload has not started");
        this->Drop(tensor, l);
        break;
      case Op::kPrefetchStart:
        return Prefetch(tensor, l);
      default:
        if (StateOf(tensor, l) != LinkReplay::State::kComing) {
          return absl::InvalidArgumentError("its prefetch has not started");
        }
        this->Arrive(tensor, l);
    }
    this->WaitUntil(link_.Wait(Number(tensor, l), this->Size(tensor, l)));
    return absl::OkStatus();
  }

  absl::Status Prefetch(TensorKind tensor, int l) {
    if (StateOf(tensor, l) != LinkReplay::State::kOnHost) {
      return absl::InvalidArgumentError("the tensor is not on the host");
    }
    this->held_ += this->Size(tensor, l);
    this->running_ = this->held_;
    return StartCopy(Op::kPrefetchStart, Number(tensor, l), this->Size(tensor, l));
  }

  // As instructions name it.
  static std::string Name(TensorKind tensor, int l) {
    return absl::StrCat(tensor == TensorKind::kSaved ? "saved " : "activation ", l);
  }

  bool Leaves(TensorKind tensor, int l) const {
    return StateOf(tensor, l) == LinkReplay::State::kLeaving;
  }
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_TRANSFER_REPLAY_H_
