#include "solvers/plan/replay.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {

absl::StatusOr<Simulation> Replay::Run(const Schedule& schedule,
                                       std::vector<TimelinePoint>* timeline) {
  if (timeline != nullptr) timeline->clear();
  for (size_t i = 0; i < schedule.size(); ++i) {
    absl::Status status = Step(i, schedule[i]);
    if (!status.ok()) return status;
    if (timeline != nullptr) timeline->push_back(Point());
  }
  absl::Status status = Finish();
  if (!status.ok()) return status;
  Observe(communication_.WaitForAll());
  return result_;
}

TimelinePoint Replay::Point() const {
  const StreamSpan span = beside_.value_or(StreamSpan{start_, result_.makespan});
  return {span.start, span.end, running_, held_, host_};
}

absl::Status Replay::Step(size_t index, const Instruction& instruction) {
  running_ = held_;
  start_ = result_.makespan;
  beside_.reset();
  const bool usual =
      instruction.stream == Stream::kCompute && instruction.part == 0 && !communication_.busy();
  absl::Status status = usual ? Dispatch(instruction) : DispatchUnusual(instruction);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("instruction ", index, " (", ToString(instruction), "): ", status.message()));
  }
  Note(running_, index);
  Note(held_, index);
  if (result_.makespan.value() >= kMaxTotal) {
    return absl::InvalidArgumentError(
        absl::StrCat("instruction ", index, ": the makespan overflows"));
  }
  return status;
}

absl::Status Replay::DispatchUnusual(const Instruction& instruction) {
  if (instruction.stream == Stream::kCommunication) return Communicate(instruction);
  if (instruction.stream != Stream::kCompute && instruction.stream != StreamOf(instruction.op)) {
    return WrongStream(instruction.op);
  }
  const bool has_parts = moves_parts_ && IsTransfer(instruction.op);
  if (instruction.part != 0 && !has_parts) return NoSuchPart();
  if (communication_.busy()) Observe(communication_.WaitFor(UsesNow(instruction)));
  return Dispatch(instruction);
}

absl::Status Replay::Communicate(const Instruction& instruction) {
  const bool is_op = IsForward(instruction.op) || instruction.op == Op::kBackward;
  if (!is_op) return WrongStream(instruction.op);
  if (instruction.part != 0) return NoSuchPart();
  absl::Status status = CheckCollective(instruction.stage);
  if (!status.ok()) return status;
  const Nanos now = result_.makespan;
  const TensorUses uses = UsesNow(instruction);
  status = Dispatch(instruction);
  if (!status.ok()) return status;
  const Nanos time = result_.makespan - now;
  running_ = std::max(running_, held_);
  const absl::StatusOr<StreamSpan> span = communication_.Start(uses, now, time, running_ - held_);
  if (!span.ok()) return span.status();
  held_ = running_;
  beside_ = *span;
  result_.makespan = now;
  result_.communication_time += time;
  return absl::OkStatus();
}

void Replay::Observe(const CommunicationStream::Ended& ended) {
  WaitUntil(ended.end);
  held_ -= ended.kept;
  running_ = held_;
  start_ = result_.makespan;
}

absl::Status Replay::NoSuchPart() {
  return absl::InvalidArgumentError("there is no such part that could move");
}

void Replay::AddForward(Nanos time, bool repeated) {
  result_.makespan += time;
  if (!repeated) return;
  result_.recompute_time += time;
  ++result_.recomputed_forwards;
}

absl::Status Replay::WrongStream(Op op) {
  return absl::InvalidArgumentError(
      absl::StrCat("runs on the ", ToString(StreamOf(op)), " stream only"));
}

void Replay::WaitUntil(Nanos end) {
  if (end <= result_.makespan) return;
  result_.idle_time += end - result_.makespan;
  result_.makespan = end;
}

void Replay::Note(Bytes memory, size_t index) {
  if (memory <= result_.peak) return;
  result_.peak = memory;
  result_.peak_instruction = index;
}

}  // namespace stowage
