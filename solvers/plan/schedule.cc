#include "solvers/plan/schedule.h"

#include "absl/strings/str_cat.h"
#include "solvers/model/canonical.h"

namespace stowage {

bool IsForward(Op op) {
  return op == Op::kForwardKeepAll || op == Op::kForwardKeepInput || op == Op::kForwardKeepNothing;
}

bool IsTransfer(Op op) {
  return op == Op::kOffloadStart || op == Op::kOffloadWait || op == Op::kPrefetchStart ||
         op == Op::kPrefetchWait;
}

Stream StreamOf(Op op) {
  if (op == Op::kOffloadStart) return Stream::kToHost;
  if (op == Op::kPrefetchStart) return Stream::kToDevice;
  return Stream::kCompute;
}

const char* ToString(Op op) {
  switch (op) {
    case Op::kForwardKeepAll:
      return "forward-keep-all";
    case Op::kForwardKeepInput:
      return "forward-keep-input";
    case Op::kForwardKeepNothing:
      return "forward-keep-nothing";
    case Op::kBackward:
      return "backward";
    case Op::kDiscard:
      return "discard";
    case Op::kReduce:
      return "reduce";
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
  if (!IsForward(instruction.op) && instruction.op != Op::kBackward) {
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

}  // namespace stowage
