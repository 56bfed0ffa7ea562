#include "solvers/schedule/schedule_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/units.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/internal/chain_replay.h"
#include "solvers/schedule/internal/graph_replay.h"
#include "solvers/schedule/internal/transfer_replay.h"

namespace stowage {
namespace {

// Keeps book of the blocks of a replay. Internal to schedule_blocks.h.

// Tensors go by numbers below `tensors`. All O(1), but for EndInstruction: O(what changed).
class BlockBook {
 public:
  explicit BlockBook(size_t tensors) : block_(tensors, kNone) {}

  // Whether the tensor takes memory after the instruction that runs, or, before the first, from the
  // start on.
  void See(size_t tensor, bool taken, Bytes size, const BlockName& name) {
    size_t& block = block_[tensor];
    if (taken == (block != kNone) || size == Bytes(0)) return;
    if (!taken) {
      dropped_.push_back(block);
      block = kNone;
      return;
    }
    block = blocks_.lives.size();
    blocks_.lives.push_back({size, time_step_, -1});
    blocks_.names.push_back(name);
    made_.push_back(block);
  }

  // The memory of a tensor is another's from now on.
  void Rename(size_t from, size_t to) {
    block_[to] = block_[from];
    block_[from] = kNone;
  }

  // Ends what was seen before the first instruction.
  void EndStart() {
    for (const size_t block : made_) Open(block, 0);
    made_.clear();
  }

  // `running` and `held`: the evaluator's memory while the instruction runs and after it. INTERNAL if
  // the blocks do not add up to them.
  absl::Status EndInstruction(Bytes running, Bytes held, int32_t stage) {
    Bytes made;
    for (const size_t block : made_) made += blocks_.lives[block].size;
    // What the op makes is there while it runs, unless the profile says that it takes less.
    const bool early = live_ + made <= running;
    for (const size_t block : made_) {
      if (early) Open(block, time_step_);
    }
    const Bytes workspace = running - live_;
    if (workspace > Bytes(0)) {
      blocks_.lives.push_back({workspace, time_step_, time_step_ + 1});
      blocks_.names.push_back({BlockUse::kWorkspace, stage});
    }
    for (const size_t block : dropped_) Close(block, time_step_ + 1);
    for (const size_t block : made_) {
      if (!early) Open(block, time_step_ + 1);
    }
    made_.clear();
    dropped_.clear();
    time_step_ += 2;
    if (workspace >= Bytes(0) && live_ == held) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("time step ", time_step_ - 1, ": the blocks take ",
                                            live_.value(), " bytes, the evaluator says ",
                                            held.value()));
  }

  // Ends all blocks.
  ScheduleBlocks Finish() {
    for (BlockLife& life : blocks_.lives) {
      if (life.end < 0) life.end = time_step_;
    }
    return std::move(blocks_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  void Open(size_t block, int64_t time_step) {
    blocks_.lives[block].begin = time_step;
    live_ += blocks_.lives[block].size;
  }

  void Close(size_t block, int64_t time_step) {
    blocks_.lives[block].end = time_step;
    live_ -= blocks_.lives[block].size;
  }

  ScheduleBlocks blocks_;
  std::vector<size_t> block_;    // by tensor
  std::vector<size_t> made_;     // blocks, by the instruction that runs
  std::vector<size_t> dropped_;  // the same
  int64_t time_step_ = 0;
  Bytes live_;
};

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
    if (i.op == Op::kDropSavedKeepOutput) book_.Rename(Tensor(kOutput, l), Tensor(kPlain, l));
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
    book_.See(Tensor(kOutput, l), taken && !Stopped(l), stage.output, {BlockUse::kSaved, l});
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
    const bool taken = TakesMemory(tensor, number) && (saved || !Unmade(number));
    book_.See(3 * static_cast<size_t>(number) + (saved ? 1 : 0), taken, Size(tensor, number),
              {saved ? BlockUse::kSaved : BlockUse::kActivation, number});
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

absl::StatusOr<ScheduleBlocks> BlocksOf(const Instance& instance, const Schedule& schedule) {
  absl::Status status = instance.CheckLink();
  // Without a link a copy is an error of the evaluator's words.
  if (status.ok() && !instance.link()) status = Evaluator(instance).Run(schedule).status();
  if (!status.ok()) return status;
  const TransferModel link = instance.link().value_or(NoTransfers());
  if (instance.is_graph()) return Extract<GraphBlocks>(instance.graph(), schedule, link);
  return Extract<ChainBlocks>(instance.chain(), schedule, link);
}

}  // namespace stowage
