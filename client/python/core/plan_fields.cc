#include "client/python/core/plan_fields.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "client/python/core/dict_fields.h"
#include "client/python/core/status_error.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace py = pybind11;

template <>
inline constexpr EnumName<PlanStatus> kEnumNames<PlanStatus>[] = {
    {PlanStatus::kFound, "PLAN_STATUS_FOUND"},
    {PlanStatus::kProvenInfeasible, "PLAN_STATUS_PROVEN_INFEASIBLE"},
    {PlanStatus::kNotFound, "PLAN_STATUS_NOT_FOUND"}};

template <>
inline constexpr EnumName<Op> kEnumNames<Op>[] = {
    {Op::kForwardSave, "OP_FORWARD_SAVE"},
    {Op::kForwardNoSave, "OP_FORWARD_NO_SAVE"},
    {Op::kForwardNoSaveFreeInput, "OP_FORWARD_NO_SAVE_FREE_INPUT"},
    {Op::kBackward, "OP_BACKWARD"},
    {Op::kDiscard, "OP_DISCARD"},
    {Op::kDropSavedKeepOutput, "OP_DROP_SAVED_KEEP_OUTPUT"},
    {Op::kOffloadStart, "OP_OFFLOAD_START"},
    {Op::kOffloadWait, "OP_OFFLOAD_WAIT"},
    {Op::kPrefetchStart, "OP_PREFETCH_START"},
    {Op::kPrefetchWait, "OP_PREFETCH_WAIT"}};

template <>
inline constexpr EnumName<Stream> kEnumNames<Stream>[] = {
    {Stream::kCompute, "STREAM_COMPUTE"},
    {Stream::kToHost, "STREAM_TO_HOST"},
    {Stream::kToDevice, "STREAM_TO_DEVICE"},
    {Stream::kCommunication, "STREAM_COMMUNICATION"}};

namespace {

// Of the contract, where an op may leave it open.
enum class WireTensor { kUnspecified, kActivation, kSaved };

struct WireInstruction {
  Op op = Op::kForwardSave;
  int32_t stage = 0;
  WireTensor tensor = WireTensor::kUnspecified;
  Stream stream = Stream::kCompute;
  uint16_t part = 0;
};

struct ScheduleMessage {
  std::vector<WireInstruction> instructions;
};

struct StageVerticesMessage {
  std::vector<int64_t> vertex_ids;
};

struct PlanMessage {
  Plan plan;
  ScheduleMessage schedule;
  std::vector<StageVerticesMessage> stage_vertices;
  double gap = 0.0;
  std::string digest;  // base64
};

// Discards and copies name a tensor; for the others it follows from the op.
bool NamesTensor(Op op) { return op == Op::kDiscard || IsTransfer(op); }

TensorKind TensorOf(Op op) {
  return op == Op::kDropSavedKeepOutput ? TensorKind::kSaved : TensorKind::kActivation;
}

}  // namespace

template <>
inline constexpr EnumName<WireTensor> kEnumNames<WireTensor>[] = {
    {WireTensor::kUnspecified, "TENSOR_KIND_UNSPECIFIED"},
    {WireTensor::kActivation, "TENSOR_KIND_ACTIVATION"},
    {WireTensor::kSaved, "TENSOR_KIND_SAVED"}};

template <class Archive>
void Fields(Archive* fields, Simulation* prediction) {
  (*fields)("makespan_ns", &prediction->makespan);
  (*fields)("peak_bytes", &prediction->peak);
  (*fields)("recompute_time_ns", &prediction->recompute_time);
  (*fields)("idle_time_ns", &prediction->idle_time);
  (*fields)("recomputed_forwards", &prediction->recomputed_forwards);
  (*fields)("host_peak_bytes", &prediction->host_peak);
  (*fields)("offloaded_bytes", &prediction->offloaded);
  (*fields)("prefetched_bytes", &prediction->prefetched);
  (*fields)("communication_time_ns", &prediction->communication_time);
}

template <class Archive>
void Fields(Archive* fields, Provenance* provenance) {
  (*fields)("solver", &provenance->solver);
  (*fields)("solver_version", &provenance->solver_version);
  (*fields)("solve_time_ns", &provenance->solve_time);
  (*fields)("slots", &provenance->slots);
}

namespace {

// With the gap, which the message has among the bounds.
struct BoundsMessage {
  Bounds bounds;
  double gap = 0.0;
};

template <class Archive>
void Fields(Archive* fields, BoundsMessage* message) {
  (*fields)("store_all_makespan_ns", &message->bounds.store_all_makespan);
  (*fields)("store_all_peak_bytes", &message->bounds.store_all_peak);
  (*fields)("lower_bound_ns", &message->bounds.lower_bound);
  (*fields)("gap", &message->gap);
  (*fields)("proven_optimal", &message->bounds.proven_optimal);
  (*fields)("schedule_class", &message->bounds.schedule_class);
  (*fields)("least_budget_bytes", &message->bounds.least_budget);
}

template <class Archive>
void Fields(Archive* fields, WireInstruction* instruction) {
  (*fields)("op", &instruction->op);
  (*fields)("stage", &instruction->stage);
  (*fields)("tensor", &instruction->tensor);
  (*fields)("stream", &instruction->stream);
  (*fields)("part", &instruction->part);
}

template <class Archive>
void Fields(Archive* fields, ScheduleMessage* schedule) {
  (*fields)("instructions", &schedule->instructions);
}

template <class Archive>
void Fields(Archive* fields, StageVerticesMessage* vertices) {
  (*fields)("vertex_ids", &vertices->vertex_ids);
}

template <class Archive>
void Fields(Archive* fields, PlanMessage* message) {
  BoundsMessage bounds{message->plan.bounds, message->gap};
  (*fields)("status", &message->plan.status);
  (*fields)("budget_bytes", &message->plan.budget);
  (*fields)("schedule", &message->schedule);
  (*fields)("prediction", &message->plan.prediction);
  (*fields)("bounds", &bounds);
  (*fields)("provenance", &message->plan.provenance);
  (*fields)("stage_vertices", &message->stage_vertices);
  (*fields)("digest", &message->digest);
  (*fields)("revision", &message->plan.revision);
  (*fields)("explanation", &message->plan.explanation);
  (*fields)("search_complete", &message->plan.search_complete);
  message->plan.bounds = bounds.bounds;
}

WireInstruction ToWire(const Instruction& instruction) {
  WireInstruction wire{instruction.op, instruction.stage, WireTensor::kUnspecified,
                       instruction.stream, instruction.part};
  if (NamesTensor(instruction.op)) {
    wire.tensor =
        instruction.tensor == TensorKind::kSaved ? WireTensor::kSaved : WireTensor::kActivation;
  }
  return wire;
}

Instruction FromWire(const WireInstruction& wire, size_t index) {
  if (wire.tensor == WireTensor::kUnspecified && NamesTensor(wire.op)) {
    Throw(FieldError(absl::StrCat("schedule.instructions[", index, "].tensor"),
                     "TENSOR_KIND_UNSPECIFIED", "must be set"));
  }
  const TensorKind tensor = wire.tensor == WireTensor::kUnspecified ? TensorOf(wire.op)
                            : wire.tensor == WireTensor::kSaved     ? TensorKind::kSaved
                                                                    : TensorKind::kActivation;
  return {wire.op, wire.stage, tensor, wire.stream, wire.part};
}

std::string DigestText(const Schedule& schedule) {
  return absl::Base64Escape(ScheduleDigest(schedule).ToBinary());
}

const char* WordOf(TensorKind tensor) {
  return tensor == TensorKind::kSaved ? "saved" : "activation";
}

// The enum value that ToString calls so, of those up to `last`.
template <class E, class ToWord>
E ByWord(const py::handle& word, const std::string& path, E last, ToWord to_word) {
  const std::string text = py::str(word);
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    if (text == to_word(static_cast<E>(value))) return static_cast<E>(value);
  }
  Throw(FieldError(path, text, "is no word of a schedule"));
}

Instruction InstructionFromTuple(const py::handle& source, const std::string& path) {
  if (!py::isinstance<py::sequence>(source)) {
    Throw(FieldError(path, std::string(py::str(source)), "must be (op, stage, ...)"));
  }
  const auto tuple = py::reinterpret_borrow<py::sequence>(source);
  const size_t size = py::len(tuple);
  if (size < 2 || size > 5) {
    Throw(FieldError(path, static_cast<int64_t>(size), "must have two to five entries"));
  }
  Instruction made;
  made.op = ByWord(tuple[0], path + ".op", Op::kPrefetchWait, [](Op op) { return ToString(op); });
  ReadValue(tuple[1], path + ".stage", &made.stage);
  made.tensor = TensorOf(made.op);
  made.stream = StreamOf(made.op);
  if (size > 2) made.tensor = ByWord(tuple[2], path + ".tensor", TensorKind::kSaved, WordOf);
  if (size > 3) {
    made.stream = ByWord(tuple[3], path + ".stream", Stream::kCommunication,
                         [](Stream stream) { return ToString(stream); });
  }
  if (size > 4) ReadValue(tuple[4], path + ".part", &made.part);
  return made;
}

}  // namespace

py::dict DictOf(const Plan& plan) {
  PlanMessage message;
  message.plan = plan;
  message.gap = plan.status == PlanStatus::kFound ? plan.gap() : 0.0;
  message.digest = DigestText(plan.schedule);
  for (const Instruction& instruction : plan.schedule) {
    message.schedule.instructions.push_back(ToWire(instruction));
  }
  for (const std::vector<int64_t>& ids : plan.stage_vertices)
    message.stage_vertices.push_back({ids});
  return WriteMessage(&message);
}

Plan PlanFromDict(const py::dict& dict) {
  PlanMessage message;
  ReadMessage(dict, "", &message);
  Plan plan = std::move(message.plan);
  for (const WireInstruction& wire : message.schedule.instructions) {
    plan.schedule.push_back(FromWire(wire, plan.schedule.size()));
  }
  for (StageVerticesMessage& stage : message.stage_vertices) {
    plan.stage_vertices.push_back(std::move(stage.vertex_ids));
  }
  if (message.digest != DigestText(plan.schedule)) {
    Throw(FieldError("digest", message.digest, "must be the SHA-256 of the schedule"));
  }
  return plan;
}

py::list TuplesOf(const Schedule& schedule) {
  py::list tuples;
  for (const Instruction& i : schedule) {
    tuples.append(
        py::make_tuple(ToString(i.op), i.stage, WordOf(i.tensor), ToString(i.stream), i.part));
  }
  return tuples;
}

Schedule ScheduleFromTuples(const py::sequence& instructions) {
  Schedule schedule;
  for (const py::handle source : instructions) {
    schedule.push_back(
        InstructionFromTuple(source, absl::StrCat("schedule[", schedule.size(), "]")));
  }
  return schedule;
}

}  // namespace stowage
