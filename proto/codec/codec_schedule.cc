#include "proto/codec/codec_schedule.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "proto/codec/enum_map.h"

namespace stowage {
namespace {

constexpr EnumMap<v1::Op, Op, 10> kOps{{
    {v1::OP_FORWARD_SAVE, Op::kForwardSave},
    {v1::OP_FORWARD_NO_SAVE, Op::kForwardNoSave},
    {v1::OP_FORWARD_NO_SAVE_FREE_INPUT, Op::kForwardNoSaveFreeInput},
    {v1::OP_BACKWARD, Op::kBackward},
    {v1::OP_DISCARD, Op::kDiscard},
    {v1::OP_DROP_SAVED_KEEP_OUTPUT, Op::kDropSavedKeepOutput},
    {v1::OP_OFFLOAD_START, Op::kOffloadStart},
    {v1::OP_OFFLOAD_WAIT, Op::kOffloadWait},
    {v1::OP_PREFETCH_START, Op::kPrefetchStart},
    {v1::OP_PREFETCH_WAIT, Op::kPrefetchWait},
}};

constexpr EnumMap<v1::TensorKind, TensorKind, 2> kTensorKinds{{
    {v1::TENSOR_KIND_ACTIVATION, TensorKind::kActivation},
    {v1::TENSOR_KIND_SAVED, TensorKind::kSaved},
}};

constexpr EnumMap<v1::Stream, Stream, 4> kStreams{{
    {v1::STREAM_COMPUTE, Stream::kCompute},
    {v1::STREAM_TO_HOST, Stream::kToHost},
    {v1::STREAM_TO_DEVICE, Stream::kToDevice},
    {v1::STREAM_COMMUNICATION, Stream::kCommunication},
}};

constexpr int32_t kMaxPart = std::numeric_limits<decltype(Instruction::part)>::max();

// Discards and transfers are about a tensor of the sender's choice; for the others it follows from
// the op.
bool ChoosesTensor(Op op) {
  return !IsForward(op) && op != Op::kBackward && op != Op::kDropSavedKeepOutput;
}

TensorKind ImpliedTensor(Op op) {
  return op == Op::kDropSavedKeepOutput ? TensorKind::kSaved : TensorKind::kActivation;
}

std::string FieldOf(int index, const char* field) {
  return absl::StrCat("schedule.instructions[", index, "].", field);
}

absl::Status ReadTensor(const v1::Instruction& message, int index, Instruction* out) {
  if (message.tensor() == v1::TENSOR_KIND_UNSPECIFIED && !ChoosesTensor(out->op)) {
    out->tensor = ImpliedTensor(out->op);
    return absl::OkStatus();
  }
  const auto tensor = FindNative(kTensorKinds, message.tensor());
  if (!tensor) return UnknownEnum(FieldOf(index, "tensor"), message.tensor());
  out->tensor = *tensor;
  return absl::OkStatus();
}

absl::Status ReadInstruction(const v1::Instruction& message, int index, Instruction* out) {
  const auto op = FindNative(kOps, message.op());
  if (!op) return UnknownEnum(FieldOf(index, "op"), message.op());
  out->op = *op;
  if (message.stage() < 0)
    return FieldError(FieldOf(index, "stage"), message.stage(), "must be >= 0");
  out->stage = message.stage();
  const auto stream = FindNative(kStreams, message.stream());
  if (!stream) return UnknownEnum(FieldOf(index, "stream"), message.stream());
  out->stream = *stream;
  if (message.part() < 0) return FieldError(FieldOf(index, "part"), message.part(), "must be >= 0");
  if (message.part() > kMaxPart) {
    return FieldError(FieldOf(index, "part"), message.part(),
                      absl::StrCat("must be <= ", kMaxPart));
  }
  out->part = static_cast<uint16_t>(message.part());
  return ReadTensor(message, index, out);
}

}  // namespace

void WriteSchedule(const Schedule& schedule, v1::Schedule* out) {
  out->mutable_instructions()->Reserve(static_cast<int>(schedule.size()));
  for (const Instruction& instruction : schedule) {
    v1::Instruction* message = out->add_instructions();
    message->set_op(ToWire(kOps, instruction.op));
    message->set_stage(instruction.stage);
    message->set_stream(ToWire(kStreams, instruction.stream));
    message->set_part(instruction.part);
    // The digest covers the tensor, so one that does not follow from the op is never left out.
    if (ChoosesTensor(instruction.op) || instruction.tensor != ImpliedTensor(instruction.op)) {
      message->set_tensor(ToWire(kTensorKinds, instruction.tensor));
    }
  }
}

absl::StatusOr<Schedule> ReadSchedule(const v1::Schedule& message) {
  Schedule schedule(static_cast<size_t>(message.instructions_size()));
  for (int i = 0; i < message.instructions_size(); ++i) {
    const absl::Status status =
        ReadInstruction(message.instructions(i), i, &schedule[static_cast<size_t>(i)]);
    if (!status.ok()) return status;
  }
  return schedule;
}

}  // namespace stowage
