#include "solvers/plan/schedule_blocks.h"

#include <algorithm>
#include <cstddef>

#include "solvers/plan/block_book.h"
#include "solvers/plan/graph_replay.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/part_replay.h"
#include "solvers/plan/simulate.h"
#include "solvers/plan/transfer_replay.h"

namespace stowage {
namespace {

// What TransferReplay wants where there is no transfer: the schedules are ones that Simulate accepts
// without.
TransferModel NoTransfers() { return {{1, Nanos(0)}, {1, Nanos(0)}, false, Bytes(0)}; }

// Tells the book what each instruction changed.
class ChainBlocks final : public PartReplay {
 public:
  ChainBlocks(const Chain& chain, const TransferModel& transfers)
      : PartReplay(chain, transfers),
        book_(3 * static_cast<size_t>(last() + 1) + CountSavedBlocks(chain)) {
    size_t next = 3 * static_cast<size_t>(last() + 1);
    for (int l = 0; l <= last(); ++l) {
      first_saved_.push_back(next);
      if (l > 0) next += SavedBlocks(l);
    }
    gradient_ = last();
    SeeActivation(0);
    SeeGradient(gradient_);
    book_.EndStart();
  }

  ScheduleBlocks Take() { return book_.Finish(); }

 private:
  absl::Status Dispatch(const Instruction& i) override {
    absl::Status status = PartReplay::Dispatch(i);
    if (!status.ok()) return status;
    const int l = i.stage;
    if (i.op == Op::kReduce) book_.Rename(Tensor(kOutput, l), Tensor(kPlain, l));
    if (l > 0) SeeActivation(l - 1);
    SeeActivation(l);
    if (l > 0) SeeSaved(l);
    if (i.op == Op::kBackward) {
      gradient_ = l - 1;
      SeeGradient(l);
      SeeGradient(l - 1);
    }
    return book_.EndInstruction(running_, held_, i.stage);
  }

  enum Single { kPlain, kGradient, kOutput };

  static size_t Tensor(Single tensor, int l) {
    return 3 * static_cast<size_t>(l) + static_cast<size_t>(tensor);
  }
  // All of them, but the output.
  size_t SavedBlocks(int l) const {
    return static_cast<size_t>(std::max(1, chain_.stage(l).parts()));
  }
  static size_t CountSavedBlocks(const Chain& chain) {
    size_t count = 0;
    for (int l = 1; l <= chain.length() + 1; ++l) {
      count += static_cast<size_t>(std::max(1, chain.stage(l).parts()));
    }
    return count;
  }

  void SeeActivation(int l) {
    book_.See(Tensor(kPlain, l), TakesMemory(TensorKind::kActivation, l), chain_.activation(l),
              {BlockUse::kActivation, l});
  }

  void SeeGradient(int l) {
    book_.See(Tensor(kGradient, l), gradient_ == l, chain_.gradient(l), {BlockUse::kGradient, l});
  }

  void SeeSaved(int l) {
    const Stage& stage = chain_.stage(l);
    const int parts = stage.parts();
    const size_t first = first_saved_[static_cast<size_t>(l)];
    for (int k = 1; k < parts; ++k) {
      book_.See(first + static_cast<size_t>(k) - 1, PartTakesMemory(l, k), stage.part(k),
                {BlockUse::kSaved, l});
    }
    const bool taken = parts == 0 ? TakesMemory(TensorKind::kSaved, l) : PartTakesMemory(l, parts);
    const Bytes rest = parts == 0 ? stage.saved : stage.part(parts);
    book_.See(Tensor(kOutput, l), taken, stage.output, {BlockUse::kSaved, l});
    book_.See(first + SavedBlocks(l) - 1, taken, rest - stage.output, {BlockUse::kSaved, l});
  }

  BlockBook book_;
  std::vector<size_t> first_saved_;  // tensors, by stage
  int gradient_;                     // that is there
};

class GraphBlocks final : public TransferReplay<GraphReplay> {
 public:
  GraphBlocks(const Graph& graph, const TransferModel& transfers)
      : TransferReplay(graph, transfers), book_(3 * static_cast<size_t>(graph.size() + 1)) {}

  ScheduleBlocks Take() { return book_.Finish(); }

 private:
  absl::Status Dispatch(const Instruction& i) override {
    absl::Status status = TransferReplay::Dispatch(i);
    if (!status.ok()) return status;
    const int p = i.stage - 1;
    See(TensorKind::kActivation, graph_.storage(p) + 1);
    See(TensorKind::kSaved, p + 1);
    if (i.op == Op::kBackward) SeeGradients(p);
    return book_.EndInstruction(running_, held_, i.stage);
  }

  void See(TensorKind tensor, int number) {
    const bool saved = tensor == TensorKind::kSaved;
    book_.See(3 * static_cast<size_t>(number) + (saved ? 1 : 0), TakesMemory(tensor, number),
              Size(tensor, number), {saved ? BlockUse::kSaved : BlockUse::kActivation, number});
  }

  void SeeGradient(int storage) {
    book_.See(3 * static_cast<size_t>(storage + 1) + 2, GradientHeld(storage + 1),
              graph_.vertex(storage).output_gradient, {BlockUse::kGradient, storage + 1});
  }

  // Those that a backward makes or drops; the first makes those of the network's outputs.
  void SeeGradients(int p) {
    for (int q = 0; !seeded_ && q < graph_.size(); ++q) {
      if (graph_.storage(q) == q) SeeGradient(q);
    }
    seeded_ = true;
    SeeGradient(graph_.storage(p));
    for (const GraphInput& input : graph_.vertex(p).inputs) {
      SeeGradient(graph_.storage(static_cast<int>(input.vertex)));
    }
  }

  BlockBook book_;
  bool seeded_ = false;
};

template <class Blocks, class Problem>
absl::StatusOr<ScheduleBlocks> Extract(const Problem& problem, const Schedule& schedule,
                                       const TransferModel& transfers) {
  const absl::Status status = CheckNoCommunication(schedule);
  if (!status.ok()) return status;
  Blocks blocks(problem, transfers);
  const absl::StatusOr<Simulation> simulation = blocks.Run(schedule, nullptr);
  if (!simulation.ok()) return simulation.status();
  return blocks.Take();
}

}  // namespace

absl::StatusOr<ScheduleBlocks> BlocksOf(const Chain& chain, const Schedule& schedule) {
  const absl::StatusOr<Simulation> simulation = Simulate(chain, schedule);
  if (!simulation.ok()) return simulation.status();
  return Extract<ChainBlocks>(chain, schedule, NoTransfers());
}

absl::StatusOr<ScheduleBlocks> BlocksOf(const Chain& chain, const Schedule& schedule,
                                        const TransferModel& transfers) {
  const absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return Extract<ChainBlocks>(chain, schedule, transfers);
}

absl::StatusOr<ScheduleBlocks> BlocksOf(const Graph& graph, const Schedule& schedule) {
  const absl::StatusOr<Simulation> simulation = SimulateGraph(graph, schedule);
  if (!simulation.ok()) return simulation.status();
  return Extract<GraphBlocks>(graph, schedule, NoTransfers());
}

absl::StatusOr<ScheduleBlocks> BlocksOf(const Graph& graph, const Schedule& schedule,
                                        const TransferModel& transfers) {
  const absl::Status status = ValidateTransferModel(transfers);
  if (!status.ok()) return status;
  return Extract<GraphBlocks>(graph, schedule, transfers);
}

}  // namespace stowage
