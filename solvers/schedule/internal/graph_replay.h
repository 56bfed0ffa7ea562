// The replay of a graph without transfers. Internal to the evaluator (../accounting.md has the rules).
#ifndef STOWAGE_SOLVERS_SCHEDULE_INTERNAL_GRAPH_REPLAY_H_
#define STOWAGE_SOLVERS_SCHEDULE_INTERNAL_GRAPH_REPLAY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/graph.h"
#include "solvers/model/index.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/internal/replay.h"
#include "solvers/schedule/internal/transfer_replay.h"

namespace stowage {

class GraphReplay : public Replay {
 public:
  explicit GraphReplay(const Graph& graph)
      : graph_(graph),
        versions_(graph),
        version_(Index(graph.size())),
        tensors_(version_.size(), false),
        extras_(version_.size(), false),
        unmade_(version_.size(), false),
        gradient_(version_.size(), false),
        ran_(version_.size(), false),
        ran_backward_(version_.size(), false),
        waits_for_(version_.size(), 0) {
    for (int p = 0; p < graph.size(); ++p) {
      const Vertex& v = graph.vertex(p);
      for (const GraphInput& input : v.inputs) ++waits_for_[Index(Position(input))];
      if (FirstRunsInOrder(v)) ordered_.push_back(p);
    }
  }

 protected:
  absl::Status Finish() const override {
    if (!graph_.has_backwards()) return FinishDag();
    for (int p = graph_.size() - 1; p >= 0; --p) {
      if (!ran_backward_[Index(p)]) {
        return absl::InvalidArgumentError(
            absl::StrCat("the schedule ends before backward ", p + 1));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Dispatch(const Instruction& i) override {
    absl::Status status = CheckStage(i);
    if (!status.ok()) return status;
    const int p = i.stage - 1;
    switch (i.op) {
      case Op::kForwardSave:
        if (!graph_.has_backwards()) break;
        return Forward(true, p);
      case Op::kForwardNoSave:
        return Forward(false, p);
      case Op::kBackward:
        if (!graph_.has_backwards()) break;
        return RunBackward(p);
      case Op::kDiscard:
        return RunDiscard(i.tensor, p);
      case Op::kForwardNoSaveFreeInput:
      case Op::kDropSavedKeepOutput:
        break;
      case Op::kOffloadStart:
      case Op::kOffloadWait:
      case Op::kPrefetchStart:
      case Op::kPrefetchWait:
        return absl::InvalidArgumentError("transfers need a transfer model");
    }
    return absl::InvalidArgumentError(
        absl::StrCat("the op has no place in the accounting of a ",
                     graph_.has_backwards() ? "graph" : "compute DAG"));
  }

  absl::Status FinishDag() const {
    for (int p = 0; p < graph_.size(); ++p) {
      if (!ran_[Index(p)]) {
        return absl::InvalidArgumentError(absl::StrCat("the schedule ends before forward ", p + 1));
      }
      absl::Status status =
          graph_.vertex(p).result ? CheckHeld("a result", p, versions_.made(p)) : absl::OkStatus();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status CheckCollective(int number) const override {
    absl::Status status = CheckNumber(number);
    if (!status.ok() || graph_.vertex(number - 1).collective) return status;
    return absl::InvalidArgumentError(
        "only vertices that are collective run on the communication stream");
  }

  TensorUses UsesNow(const Instruction& i) const override {
    if (!CheckNumber(i.stage).ok()) return {};
    const size_t p = Index(i.stage - 1);
    return UsesOf(graph_, i, ran_[p], tensors_[p]);
  }

  // What TransferReplay wants, by the numbers that instructions have.
  int last() const { return graph_.size(); }

  // Whether the gradient of the storage that the vertex owns is there.
  bool GradientHeld(int number) const {
    return gradient_[Index(number - 1)] && !ran_backward_[Index(number - 1)];
  }

  absl::Status CheckStage(const Instruction& i) const { return CheckNumber(i.stage); }

  absl::Status CheckMoves(TensorKind tensor, int number) const {
    return tensor == TensorKind::kSaved ? absl::OkStatus() : CheckOwns(number - 1);
  }

  bool Held(TensorKind tensor, int number) const {
    return (tensor == TensorKind::kSaved ? extras_ : tensors_)[Index(number - 1)];
  }

  Bytes Size(TensorKind tensor, int number) const {
    const int p = number - 1;
    return tensor == TensorKind::kSaved ? graph_.vertex(p).extra_saved : graph_.bytes(p);
  }

  // Whether the tensor was left out by a recompute that stopped early: it counts as held until it is dropped, and takes
  // no memory.
  bool Unmade(int number) const { return unmade_[Index(number - 1)]; }

  void Drop(TensorKind tensor, int number) {
    const bool saved = tensor == TensorKind::kSaved;
    (saved ? extras_ : tensors_)[Index(number - 1)] = false;
    if (!saved && Unmade(number)) {
      unmade_[Index(number - 1)] = false;
    } else {
      held_ -= Size(tensor, number);
    }
  }

  // A tensor comes back in the version in which it left.
  void Arrive(TensorKind tensor, int number) {
    (tensor == TensorKind::kSaved ? extras_ : tensors_)[Index(number - 1)] = true;
  }

  template <class Visit>
  void VisitChanges(const Instruction& i, const Visit& visit) const {
    const Vertex& v = graph_.vertex(i.stage - 1);
    if (i.op == Op::kDiscard) return visit(TensorChange::kDropped, i.tensor, i.stage);
    if (i.op == Op::kBackward) return visit(TensorChange::kDropped, TensorKind::kSaved, i.stage);
    if (i.op == Op::kForwardSave && v.extra_saved > Bytes(0)) {
      visit(TensorChange::kMade, TensorKind::kSaved, i.stage);
    }
    // What is written over in place is there no longer.
    const int storage = graph_.storage(i.stage - 1) + 1;
    if (v.alias == AliasKind::kInPlace) {
      visit(TensorChange::kDropped, TensorKind::kActivation, storage);
    } else if (v.alias == AliasKind::kNone) {
      visit(TensorChange::kMade, TensorKind::kActivation, storage);
    }
  }

  const Graph& graph_;

 private:
  static bool FirstRunsInOrder(const Vertex& v) { return v.random || v.stateful || v.collective; }
  // Vertices are named to people by the number that instructions have.
  static std::string NameOf(int position) { return absl::StrCat("vertex ", position + 1); }

  absl::Status CheckNumber(int number) const {
    if (number >= 1 && number <= graph_.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("the graph's vertices are 1 to ", graph_.size()));
  }

  static int Position(const GraphInput& input) { return static_cast<int>(input.vertex); }

  absl::Status CheckOwns(int p) const {
    if (graph_.storage(p) == p) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("its tensor belongs to ", NameOf(graph_.storage(p))));
  }

  // Whether `position` is there, in whatever version.
  bool OutputHeld(int position) const {
    return ran_[Index(position)] && tensors_[Index(graph_.storage(position))];
  }

  absl::Status CheckHeld(const std::string& what, int position, int version) const {
    if (!OutputHeld(position)) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, ", ", NameOf(position), ", is not held"));
    }
    const int held = version_[Index(graph_.storage(position))];
    if (held != version) {
      return absl::InvalidArgumentError(absl::StrCat(what, ", ", NameOf(position), ", is held as ",
                                                     NameOf(held), " left it, and needed as ",
                                                     NameOf(version), " did"));
    }
    return absl::OkStatus();
  }

  absl::Status CheckInputs(int p, bool backward) const {
    const std::vector<GraphInput>& inputs = graph_.vertex(p).inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (backward && !inputs[k].backward_needs) continue;
      absl::Status status = CheckHeld("its input", Position(inputs[k]), versions_.read(p, k));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status CheckMayRun(int p) const {
    const Vertex& v = graph_.vertex(p);
    if (ran_[Index(p)]) {
      if (Recomputable(v)) return absl::OkStatus();
      return absl::InvalidArgumentError("the vertex must not be recomputed");
    }
    if (FirstRunsInOrder(v) && ordered_[next_ordered_] != p) {
      return absl::InvalidArgumentError(
          absl::StrCat(NameOf(ordered_[next_ordered_]),
                       " has not run, and first runs that are random, stateful or collective are "
                       "in program order"));
    }
    return absl::OkStatus();
  }

  // Whether what the forward makes is not there already.
  absl::Status CheckNew(bool saving, int p) const {
    const Vertex& v = graph_.vertex(p);
    if (saving && extras_[Index(p)]) {
      return absl::InvalidArgumentError("its extras are held already");
    }
    const bool renews = saving && v.extra_saved > Bytes(0);
    // One in place has consumed its input if its output is held.
    if (v.alias != AliasKind::kInPlace && OutputHeld(p) && !renews) {
      return absl::InvalidArgumentError("its output is held already");
    }
    return absl::OkStatus();
  }

  absl::Status Forward(bool saving, int p) {
    absl::Status status = CheckMayRun(p);
    if (status.ok()) status = CheckInputs(p, false);
    if (status.ok()) status = CheckNew(saving, p);
    if (!status.ok()) return status;
    if (saving && StopsEarly(p)) return StoppedForward(p);
    const Vertex& v = graph_.vertex(p);
    const Bytes extras = saving ? v.extra_saved : Bytes(0);
    running_ = held_ + graph_.bytes(p) + extras +
               (saving ? v.forward_saving_overhead : v.forward_overhead);
    held_ += extras;
    if (extras > Bytes(0)) extras_[Index(p)] = true;
    if (v.alias == AliasKind::kInPlace) version_[Index(graph_.storage(p))] = p;
    if (v.alias == AliasKind::kNone && !tensors_[Index(p)]) {
      tensors_[Index(p)] = true;
      version_[Index(p)] = p;
      held_ += graph_.bytes(p);
    }
    AddForward(v.forward_time, ran_[Index(p)]);
    if (!ran_[Index(p)] && FirstRunsInOrder(v)) ++next_ordered_;
    ran_[Index(p)] = true;
    return absl::OkStatus();
  }

  // A recompute right before the backward, for the extras alone: the output is dropped unread.
  bool StopsEarly(int p) const {
    const Vertex& v = graph_.vertex(p);
    return v.stops() && ran_[Index(p)] && v.extra_saved > Bytes(0) &&
           WhatFollowsNow() == AfterSaving::kDropAndBackward;
  }

  absl::Status StoppedForward(int p) {
    const Vertex& v = graph_.vertex(p);
    running_ = held_ + v.extra_saved + v.stopped_overhead();
    held_ += v.extra_saved;
    extras_[Index(p)] = true;
    if (!tensors_[Index(p)]) {
      tensors_[Index(p)] = unmade_[Index(p)] = true;
      version_[Index(p)] = p;
    }
    AddForward(v.stopped_time(), /*repeated=*/true);
    return absl::OkStatus();
  }

  absl::Status CheckBackward(int p) const {
    const Vertex& v = graph_.vertex(p);
    if (ran_backward_[Index(p)]) return absl::InvalidArgumentError("it has run already");
    if (!ran_[Index(p)]) return absl::InvalidArgumentError("its forward has not run");
    if (waits_for_[Index(p)] > 0) {
      return absl::InvalidArgumentError("a vertex that reads it has not run backward");
    }
    if (v.extra_saved > Bytes(0) && !extras_[Index(p)]) {
      return absl::InvalidArgumentError("its extras are not held");
    }
    absl::Status status = CheckInputs(p, true);
    if (status.ok() && v.backward_needs_output) {
      status = CheckHeld("its output", p, versions_.made(p));
    }
    return status;
  }

  absl::Status RunBackward(int p) {
    absl::Status status = CheckBackward(p);
    if (!status.ok()) return status;
    if (!seeded_) Seed();
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) {
      MakeGradient(graph_.storage(Position(input)));
      --waits_for_[Index(Position(input))];
    }
    running_ = held_ + v.backward_overhead;
    if (extras_[Index(p)]) Drop(TensorKind::kSaved, p + 1);
    if (graph_.storage(p) == p) held_ -= v.output_gradient;
    ran_backward_[Index(p)] = true;
    result_.makespan += v.backward_time;
    return absl::OkStatus();
  }

  void Seed() {
    const std::vector<bool> seeds = SeedStorages(graph_);
    for (int p = 0; p < graph_.size(); ++p) {
      if (seeds[Index(p)]) MakeGradient(p);
    }
    seeded_ = true;
  }

  void MakeGradient(int storage) {
    if (gradient_[Index(storage)]) return;
    gradient_[Index(storage)] = true;
    held_ += graph_.vertex(storage).output_gradient;
  }

  absl::Status RunDiscard(TensorKind tensor, int p) {
    absl::Status status = tensor == TensorKind::kSaved ? absl::OkStatus() : CheckOwns(p);
    if (!status.ok()) return status;
    if (!Held(tensor, p + 1)) {
      return absl::InvalidArgumentError(tensor == TensorKind::kSaved ? "its extras are not held"
                                                                     : "the tensor is not held");
    }
    Drop(tensor, p + 1);
    return absl::OkStatus();
  }

  const GraphVersions versions_;
  std::vector<int> version_;    // that was made last, by owner of the storage
  std::vector<bool> tensors_;   // is held, by owner of the storage
  std::vector<bool> extras_;    // are held
  std::vector<bool> unmade_;    // by owner of the storage
  std::vector<bool> gradient_;  // has been made, by owner of the storage
  std::vector<bool> ran_;
  std::vector<bool> ran_backward_;
  std::vector<int> waits_for_;  // edges to readers that have not run backward
  std::vector<int> ordered_;    // whose first runs are in this order
  size_t next_ordered_ = 0;
  bool seeded_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_INTERNAL_GRAPH_REPLAY_H_
