#include "solvers/transfer/internal/segment_replay.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

SegmentOption SegmentReplay::Run(int i, int j, bool saved, const Schedule& schedule) {
  steps_.clear();
  held_ = (chain_.gradient(j) + (saved ? chain_.stage(j).saved : Bytes(0))).value();
  int64_t time = 0;
  int64_t ideal = 0;
  for (int l = i; l <= j; ++l) {
    ideal += Time(l, false) + (l == j && saved ? 0 : Time(l, true));
  }
  SegmentOption option;
  for (const Instruction& instruction : schedule) {
    const int64_t need = Step(i, instruction);
    time += Time(instruction.stage, instruction.op != Op::kBackward);
    steps_.push_back({need, time});
    option.need = std::max(option.need, need);
  }
  option.overhead = static_cast<double>(time - ideal);
  for (const auto& [need, end] : steps_) {
    const double lead = static_cast<double>(time - end);
    option.rush = std::max(option.rush, per_byte_ * static_cast<double>(need) - lead);
  }
  return option;
}

int64_t SegmentReplay::Step(int i, const Instruction& instruction) {
  const int l = instruction.stage;
  const Stage& stage = chain_.stage(l);
  if (instruction.op == Op::kBackward) {
    const int64_t running = held_ + stage.backward_overhead.value();
    held_ += chain_.gradient(l - 1).value() - chain_.gradient(l).value() - stage.saved.value();
    if (l > i && plain_[static_cast<size_t>(l)]) {
      held_ -= chain_.activation(l - 1).value();
      plain_[static_cast<size_t>(l)] = false;
    }
    return std::max(running, held_);
  }
  const bool saving = instruction.op == Op::kForwardSave;
  const int64_t made = (saving ? stage.saved : stage.output).value();
  const int64_t running =
      held_ + made + (saving ? stage.forward_saving_overhead : stage.forward_overhead).value();
  held_ += made;
  if (!saving) plain_[static_cast<size_t>(l) + 1] = true;
  if (instruction.op == Op::kForwardNoSaveFreeInput) {
    held_ -= chain_.activation(l - 1).value();
    plain_[static_cast<size_t>(l)] = false;
  }
  return running;
}

}  // namespace stowage
