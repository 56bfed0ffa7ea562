#include "solvers/schedule/schedule.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/canonical.h"
#include "solvers/schedule/varint.h"

namespace stowage {

bool IsForward(Op op) {
  return op == Op::kForwardSave || op == Op::kForwardNoSave || op == Op::kForwardNoSaveFreeInput;
}

bool IsTransfer(Op op) {
  return op == Op::kOffloadStart || op == Op::kOffloadWait || op == Op::kPrefetchStart ||
         op == Op::kPrefetchWait;
}

AfterSaving WhatFollows(const Schedule& schedule, size_t at) {
  const int32_t stage = schedule[at].stage;
  AfterSaving follows = AfterSaving::kBackward;
  for (size_t i = at + 1; i < schedule.size(); ++i) {
    const Instruction& next = schedule[i];
    if (IsForward(next.op)) break;
    if (next.op == Op::kBackward) return next.stage == stage ? follows : AfterSaving::kOther;
    if (next.stage != stage) continue;
    if (next.op != Op::kDiscard || next.tensor == TensorKind::kSaved) break;
    follows = AfterSaving::kDropAndBackward;
  }
  return AfterSaving::kOther;
}

Stream StreamOf(Op op) {
  if (op == Op::kOffloadStart) return Stream::kToHost;
  if (op == Op::kPrefetchStart) return Stream::kToDevice;
  return Stream::kCompute;
}

const char* ToString(Op op) {
  switch (op) {
    case Op::kForwardSave:
      return "forward-save";
    case Op::kForwardNoSave:
      return "forward-no-save";
    case Op::kForwardNoSaveFreeInput:
      return "forward-no-save-free-input";
    case Op::kBackward:
      return "backward";
    case Op::kDiscard:
      return "discard";
    case Op::kDropSavedKeepOutput:
      return "drop-saved-keep-output";
    case Op::kOffloadStart:
      return "offload-start";
    case Op::kOffloadWait:
      return "offload-wait";
    case Op::kPrefetchStart:
      return "prefetch-start";
    case Op::kPrefetchWait:
      return "prefetch-wait";
  }
  return "unknown";
}

const char* ToString(Stream stream) {
  switch (stream) {
    case Stream::kCompute:
      return "compute";
    case Stream::kToHost:
      return "to-host";
    case Stream::kToDevice:
      return "to-device";
    case Stream::kCommunication:
      return "communication";
  }
  return "unknown";
}

std::string ToString(const Instruction& instruction) {
  const char* tensor = "";
  if (IsTransfer(instruction.op) || instruction.op == Op::kDiscard) {
    tensor = instruction.tensor == TensorKind::kSaved ? "saved " : "activation ";
  }
  const std::string stream = instruction.stream == Stream::kCommunication
                                 ? absl::StrCat(ToString(instruction.stream), ": ")
                                 : "";
  std::string text = absl::StrCat(stream, ToString(instruction.op), " ", tensor, instruction.stage);
  if (instruction.part != 0) absl::StrAppend(&text, " part ", instruction.part);
  return text;
}

absl::Status CheckNoCommunication(const Schedule& schedule) {
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].stream != Stream::kCommunication) continue;
    return absl::InvalidArgumentError(absl::StrCat("instruction ", i, " (", ToString(schedule[i]),
                                                   "): must run on the compute stream here"));
  }
  return absl::OkStatus();
}

Digest ScheduleDigest(const Schedule& schedule) {
  CanonicalWriter out;
  out.Integer(static_cast<int64_t>(schedule.size()));
  for (const Instruction& i : schedule) {
    out.Integer(static_cast<int64_t>(i.op));
    out.Integer(i.stage);
    out.Integer(static_cast<int64_t>(i.tensor) | static_cast<int64_t>(i.part) << 8);
    out.Integer(static_cast<int64_t>(i.stream));
  }
  return Sha256(out.bytes());
}

namespace {

constexpr int64_t kMaxStage = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxPart = std::numeric_limits<uint16_t>::max();
constexpr uint8_t kPartFollows = 15;  // no head: no op has that number

bool Alike(const Instruction& a, const Instruction& b) {
  return a.op == b.op && a.tensor == b.tensor && a.stream == b.stream && a.part == b.part;
}

uint8_t Head(const Instruction& i, bool falls) {
  return static_cast<uint8_t>(static_cast<uint32_t>(i.op) | static_cast<uint32_t>(i.tensor) << 4 |
                              (falls ? 1u << 5 : 0u) | static_cast<uint32_t>(i.stream) << 6);
}

// The instruction that a head describes, of stage 0; false if no op has that number.
bool FromHead(uint8_t head, Instruction* instruction) {
  const int op = head & 15;
  if (op > static_cast<int>(Op::kPrefetchWait)) return false;
  instruction->op = static_cast<Op>(op);
  instruction->tensor = static_cast<TensorKind>(head >> 4 & 1);
  instruction->stream = static_cast<Stream>(head >> 6);
  return true;
}

// A run of instructions as it is stored.
struct Run {
  Instruction first;
  int64_t last = 0;   // stage of the last instruction
  int64_t count = 0;  // 0: none
  bool falls = false;

  int64_t step() const { return falls ? -1 : 1; }
};

// Whether EncodeSchedule would have gone on with `run` instead of starting `next`.
bool GoesOn(const Run& run, const Run& next) {
  if (run.count == 0 || !Alike(run.first, next.first)) return false;
  const int64_t change = next.first.stage - run.last;
  return run.count == 1 ? change == 1 || change == -1 : change == run.step();
}

// Reads run after run; only what EncodeSchedule writes.
class RunReader {
 public:
  RunReader(const std::string& code, int64_t max_instructions)
      : in_(code), room_(max_instructions) {}

  bool done() const { return in_.done(); }

  absl::Status Next(Run* run) {
    Run next;
    uint64_t difference = 0;
    int64_t more = 0;
    if (!ReadHead(&next) || !in_.Varint(&difference) || difference > uint64_t{4} * kMaxStage ||
        !in_.Count(room_ - 1, &more)) {
      return Malformed();
    }
    next.count = more + 1;
    const int64_t first = before_.last + UnZigZag(difference);
    next.last = first + next.step() * more;
    if (first < 0 || next.last < 0 || first > kMaxStage || next.last > kMaxStage)
      return Malformed();
    next.first.stage = static_cast<int32_t>(first);
    if ((next.falls && more == 0) || GoesOn(before_, next)) return Malformed();
    room_ -= next.count;
    before_ = *run = next;
    return absl::OkStatus();
  }

 private:
  // What the instructions do, and whether their stages fall.
  bool ReadHead(Run* run) {
    uint8_t head = 0;
    int64_t part = 0;
    if (!in_.Byte(&head)) return false;
    if (head == kPartFollows && (!in_.Count(kMaxPart, &part) || part == 0 || !in_.Byte(&head))) {
      return false;
    }
    run->first.part = static_cast<uint16_t>(part);
    run->falls = (head >> 5 & 1) != 0;
    return FromHead(head, &run->first);
  }

  static absl::Status Malformed() {
    return absl::InvalidArgumentError("the encoded schedule is malformed");
  }

  VarintReader in_;
  int64_t room_;
  Run before_;
};

}  // namespace

std::string EncodeSchedule(const Schedule& schedule) {
  std::string code;
  int64_t previous = 0;
  for (size_t first = 0; first < schedule.size();) {
    size_t end = first + 1;
    int step = 0;
    for (; end < schedule.size() && Alike(schedule[first], schedule[end]); ++end) {
      const int64_t change = int64_t{schedule[end].stage} - schedule[end - 1].stage;
      if ((change != 1 && change != -1) || (step != 0 && change != step)) break;
      step = static_cast<int>(change);
    }
    if (schedule[first].part != 0) {
      code.push_back(static_cast<char>(kPartFollows));
      AppendVarint(schedule[first].part, &code);
    }
    code.push_back(static_cast<char>(Head(schedule[first], step < 0)));
    AppendVarint(ZigZag(schedule[first].stage - previous), &code);
    AppendVarint(end - first - 1, &code);
    previous = schedule[end - 1].stage;
    first = end;
  }
  return code;
}

absl::StatusOr<Schedule> DecodeSchedule(const std::string& code, int64_t max_instructions) {
  Schedule schedule;
  RunReader in(code, max_instructions);
  Run run;
  while (!in.done()) {
    absl::Status status = in.Next(&run);
    if (!status.ok()) return status;
    Instruction instruction = run.first;
    for (int64_t i = 0; i < run.count; ++i) {
      instruction.stage = static_cast<int32_t>(run.first.stage + run.step() * i);
      schedule.push_back(instruction);
    }
  }
  return schedule;
}

absl::Status CheckScheduleCode(const std::string& code, int64_t max_instructions) {
  RunReader in(code, max_instructions);
  Run run;
  while (!in.done()) {
    absl::Status status = in.Next(&run);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<PackedSchedule> PackedSchedule::FromCode(std::string code) {
  absl::Status status = CheckScheduleCode(code, kMaxInstructions);
  if (!status.ok()) return status;
  PackedSchedule packed;
  packed.code_ = std::make_shared<const std::string>(std::move(code));
  return packed;
}

Schedule PackedSchedule::Unpack() const {
  // Written by EncodeSchedule, or checked.
  return *DecodeSchedule(*code_, std::numeric_limits<int64_t>::max());
}

}  // namespace stowage
