#include "solvers/schedule/internal/replay.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stowage {

LinkReplay::LinkReplay(const TransferModel& transfers, size_t tensors)
    : transfers_(transfers), state_(tensors, State::kNone), end_(tensors) {}

absl::StatusOr<StreamSpan> LinkReplay::Start(Stream direction, size_t tensor, Bytes bytes,
                                             Nanos now) {
  const bool leaves = direction == Stream::kToHost;
  if (leaves && bytes > transfers_.host_memory - host_) {
    return absl::InvalidArgumentError(
        absl::StrCat("host memory of ", transfers_.host_memory.value(), " bytes cannot hold ",
                     bytes.value(), " beside ", host_.value()));
  }
  Bytes& moved = leaves ? offloaded_ : prefetched_;
  Nanos& free = free_[transfers_.full_duplex && !leaves ? 1 : 0];
  StreamSpan span;
  span.start = std::max(now, free);
  span.end = span.start + CopyTime(leaves ? transfers_.to_host : transfers_.to_device, bytes);
  // Each sum is of two numbers up to kMaxTotal, of which one is below it: no overflow before here.
  if (span.end.value() >= kMaxTotal || (moved + bytes).value() >= kMaxTotal) {
    return absl::InvalidArgumentError("the copies overflow");
  }
  moved += bytes;
  if (leaves) host_ += bytes;
  free = end_[tensor] = span.end;
  state_[tensor] = leaves ? State::kLeaving : State::kComing;
  return span;
}

Nanos LinkReplay::Wait(size_t tensor, Bytes bytes) {
  if (state_[tensor] == State::kLeaving) {
    state_[tensor] = State::kOnHost;
  } else {
    Drop(tensor, bytes);
  }
  return end_[tensor];
}

void LinkReplay::Drop(size_t tensor, Bytes bytes) {
  state_[tensor] = State::kNone;
  host_ -= bytes;
}

namespace {

class ChainUses {
 public:
  ChainUses(const Chain& chain, const Instruction& instruction, bool input_held)
      : chain_(chain), i_(instruction), input_held_(input_held) {}

  TensorUses Find() {
    const int l = i_.stage;
    switch (i_.op) {
      case Op::kForwardSave:
        UseInput(/*drops=*/false);
        WriteSaved(l);
        break;
      case Op::kForwardNoSave:
      case Op::kForwardNoSaveFreeInput:
        UseInput(/*drops=*/i_.op == Op::kForwardNoSaveFreeInput);
        Use(kPlain, l, true);
        break;
      case Op::kBackward:
        UseInput(/*drops=*/true);
        WriteSaved(l);
        // One at a time is held, and each backward takes that of the one before.
        Use(kPlain, kGradient, true);
        break;
      case Op::kDropSavedKeepOutput:
        Use(kPlain, l, true);
        WriteSaved(l);
        break;
      default:
        UseNamed();
    }
    return std::move(uses_);
  }

 private:
  // The last of a stage's parts has the output, and may be read while others come and go.
  enum Kind { kPlain, kOutputPart, kOtherParts };
  static constexpr int kGradient = -1;  // the stage number in its place

  void Use(Kind kind, int l, bool writes) {
    uses_.push_back({3 * static_cast<size_t>(l + 1) + static_cast<size_t>(kind), writes});
  }

  void WriteSaved(int l) {
    Use(kOutputPart, l, true);
    Use(kOtherParts, l, true);
  }

  void UseInput(bool drops) {
    input_held_ ? Use(kPlain, i_.stage - 1, drops) : Use(kOutputPart, i_.stage - 1, false);
  }

  // Of a discard or a transfer.
  void UseNamed() {
    const bool writes = i_.op != Op::kOffloadStart;
    if (i_.tensor == TensorKind::kActivation) return Use(kPlain, i_.stage, writes);
    const int output_part = i_.stage == 0 ? 0 : chain_.stage(i_.stage).parts();
    if (i_.part == 0 || i_.part == output_part) Use(kOutputPart, i_.stage, writes);
    if (i_.part == 0 || i_.part != output_part) Use(kOtherParts, i_.stage, writes);
  }

  const Chain& chain_;
  const Instruction& i_;
  const bool input_held_;
  TensorUses uses_;
};

class GraphUses {
 public:
  GraphUses(const Graph& graph, const Instruction& instruction, bool has_run, bool output_held)
      : graph_(graph),
        i_(instruction),
        p_(instruction.stage - 1),
        has_run_(has_run),
        output_held_(output_held) {}

  TensorUses Find() {
    if (IsForward(i_.op)) {
      Forward();
    } else if (i_.op == Op::kBackward) {
      Backward();
    } else {
      Use(i_.tensor == TensorKind::kSaved ? kExtras : kTensor, p_, i_.op != Op::kOffloadStart);
    }
    return std::move(uses_);
  }

 private:
  // kRun is that the forward has run: a view has no other bytes than those that it reads.
  enum Kind { kTensor, kRun, kExtras, kGradient };

  void Use(Kind kind, int position, bool writes) {
    uses_.push_back({4 * static_cast<size_t>(position) + static_cast<size_t>(kind), writes});
  }

  void ReadOutput(int position) {
    Use(kTensor, graph_.storage(position), false);
    Use(kRun, position, false);
  }

  void Forward() {
    const Vertex& v = graph_.vertex(p_);
    for (const GraphInput& input : v.inputs) ReadOutput(static_cast<int>(input.vertex));
    if (!has_run_) Use(kRun, p_, true);
    if (i_.op == Op::kForwardSave) Use(kExtras, p_, true);
    if (v.alias == AliasKind::kInPlace) Use(kTensor, graph_.storage(p_), true);
    if (v.alias == AliasKind::kNone) Use(kTensor, p_, !output_held_);
  }

  void Backward() {
    const Vertex& v = graph_.vertex(p_);
    Use(kRun, p_, false);
    Use(kExtras, p_, true);
    if (v.backward_needs_output) ReadOutput(p_);
    Use(kGradient, graph_.storage(p_), true);
    for (const GraphInput& input : v.inputs) {
      const int position = static_cast<int>(input.vertex);
      if (input.backward_needs) ReadOutput(position);
      Use(kGradient, graph_.storage(position), true);
    }
  }

  const Graph& graph_;
  const Instruction& i_;
  const int p_;
  const bool has_run_;
  const bool output_held_;
  TensorUses uses_;
};

}  // namespace

TensorUses UsesOf(const Chain& chain, const Instruction& instruction, bool input_held) {
  if (instruction.stage < 0 || instruction.stage > chain.length() + 1) return {};
  return ChainUses(chain, instruction, input_held).Find();
}

TensorUses UsesOf(const Graph& graph, const Instruction& instruction, bool has_run,
                  bool output_held) {
  if (instruction.stage < 1 || instruction.stage > graph.size()) return {};
  return GraphUses(graph, instruction, has_run, output_held).Find();
}

absl::StatusOr<StreamSpan> CommunicationStream::Start(const TensorUses& uses, Nanos now, Nanos time,
                                                      Bytes kept) {
  StreamSpan span;
  span.start = ops_.empty() ? now : std::max(now, ops_.back().end);
  span.end = span.start + time;
  if (span.end.value() >= kMaxTotal) {
    return absl::InvalidArgumentError("the communications overflow");
  }
  ops_.push_back({span.end, kept});
  for (const TensorUse& use : uses) {
    if (use.tensor >= last_use_.size()) last_use_.resize(use.tensor + 1);
    LastUse& last = last_use_[use.tensor];
    (use.writes ? last.writer : last.reader) = ops_.size();
  }
  return span;
}

CommunicationStream::Ended CommunicationStream::WaitFor(const TensorUses& uses) {
  size_t last = 0;
  for (const TensorUse& use : uses) {
    if (use.tensor >= last_use_.size()) continue;
    const LastUse& by = last_use_[use.tensor];
    last = std::max({last, by.writer, use.writes ? by.reader : 0});
  }
  return WaitForFirst(last);
}

CommunicationStream::Ended CommunicationStream::WaitForFirst(size_t count) {
  Ended ended;
  for (; ended_ < count; ++ended_) {
    ended.end = ops_[ended_].end;
    ended.kept += ops_[ended_].kept;
  }
  return ended;
}

absl::StatusOr<Simulation> Replay::Run(const Schedule& schedule,
                                       std::vector<TimelinePoint>* timeline) {
  if (timeline != nullptr) timeline->clear();
  schedule_ = &schedule;
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
  index_ = index;
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
