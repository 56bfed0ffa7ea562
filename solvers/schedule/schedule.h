// The one schedule type of all solvers and executors: a list of instructions over the stages of a
// chain, the vertices of a graph or the nodes of a compute DAG.
//
// It expresses store-all, periodic and optimal checkpointing, nested recompute
// (rematerialization), discards and transfers. An executor carries it out and decides nothing.
#ifndef STOWAGE_SOLVERS_SCHEDULE_SCHEDULE_H_
#define STOWAGE_SOLVERS_SCHEDULE_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/digest.h"

namespace stowage {

enum class Op : uint8_t {
  kForwardSave,             // F_all: saves all for the backward, the input stays
  kForwardNoSave,           // F_ck: saves nothing, the input stays
  kForwardNoSaveFreeInput,  // F_0: saves nothing, the input is dropped
  kBackward,                // B
  kDiscard,                 // drops the plain or the saved tensors of a stage
  kDropSavedKeepOutput,     // saved tensors become the plain output
  kOffloadStart,
  kOffloadWait,
  kPrefetchStart,
  kPrefetchWait,
};

enum class TensorKind : uint8_t { kActivation, kSaved };

enum class Stream : uint8_t { kCompute, kToHost, kToDevice, kCommunication };

struct Instruction {
  Op op = Op::kForwardSave;
  int32_t stage = 0;                            // 1..L+1; where an activation is named also 0
  TensorKind tensor = TensorKind::kActivation;  // discards and transfers only
  Stream stream = Stream::kCompute;
  // Transfers of saved tensors: 0 moves all, k part k of the stage (Stage::parts).
  uint16_t part = 0;

  friend bool operator==(const Instruction& a, const Instruction& b) {
    return a.op == b.op && a.stage == b.stage && a.tensor == b.tensor && a.stream == b.stream &&
           a.part == b.part;
  }
};

using Schedule = std::vector<Instruction>;

inline Instruction ForwardSave(int stage) { return {Op::kForwardSave, stage}; }
inline Instruction ForwardNoSave(int stage) { return {Op::kForwardNoSave, stage}; }
inline Instruction ForwardNoSaveFreeInput(int stage) {
  return {Op::kForwardNoSaveFreeInput, stage};
}
inline Instruction Backward(int stage) { return {Op::kBackward, stage}; }
inline Instruction Discard(TensorKind tensor, int stage) { return {Op::kDiscard, stage, tensor}; }
inline Instruction DropSavedKeepOutput(int stage) {
  return {Op::kDropSavedKeepOutput, stage, TensorKind::kSaved};
}

// Copies between device and host memory: a start puts the copy on its stream, a wait makes the
// compute stream wait for it. `part` is up to 65535.
inline Instruction OffloadStart(TensorKind tensor, int stage, int part = 0) {
  return {Op::kOffloadStart, stage, tensor, Stream::kToHost, static_cast<uint16_t>(part)};
}
inline Instruction OffloadWait(TensorKind tensor, int stage, int part = 0) {
  return {Op::kOffloadWait, stage, tensor, Stream::kCompute, static_cast<uint16_t>(part)};
}
inline Instruction PrefetchStart(TensorKind tensor, int stage, int part = 0) {
  return {Op::kPrefetchStart, stage, tensor, Stream::kToDevice, static_cast<uint16_t>(part)};
}
inline Instruction PrefetchWait(TensorKind tensor, int stage, int part = 0) {
  return {Op::kPrefetchWait, stage, tensor, Stream::kCompute, static_cast<uint16_t>(part)};
}

bool IsForward(Op op);
bool IsTransfer(Op op);
// The stream on which an op runs, unless a forward or a backward is put on kCommunication.
Stream StreamOf(Op op);
// "forward-save", ...
const char* ToString(Op op);
// "compute", "to-host", ...
const char* ToString(Stream stream);
// "forward-save 3", "discard saved 2", "offload-start saved 2 part 1",
// "communication: backward 3".
std::string ToString(const Instruction& instruction);

// What comes after a forward that saves, up to the next forward or backward. kBackward: that is the backward of its
// stage, and nothing is done to what it made before then. kDropAndBackward: nothing but that its output is dropped.
enum class AfterSaving : uint8_t { kOther, kBackward, kDropAndBackward };
// Of schedule[at], a kForwardSave. O(instructions up to the next forward or backward).
AfterSaving WhatFollows(const Schedule& schedule, size_t at);

// INVALID_ARGUMENT that names the first instruction on the communication stream, if there is any.
absl::Status CheckNoCommunication(const Schedule& schedule);

// SHA-256 of the canonical bytes of the schedule. Equal schedules, equal digests, on any machine.
Digest ScheduleDigest(const Schedule& schedule);

// A short encoding of schedules, for caches that hold many of them.
//
// Schedules are mostly sweeps over neighbouring stages, so runs are stored: one head byte, then two
// variable-length integers (7 bits to a byte, low ones first):
//   head     op (bits 0-3), tensor (bit 4), direction (bit 5: stages fall), stream (bits 6-7)
//   stage    of the first instruction, as the zigzag difference to the last one's stage
//   count    of instructions in the run, less one; stages change by one from each to the next
// Before a run of instructions that move a part stand the byte 15 and the part, such an integer.
// A schedule has one encoding. It says nothing of the chain: whoever decodes lets the evaluator validate it.

// Of a schedule that is kept encoded: many times what the longest that solvers make have.
inline constexpr int64_t kMaxInstructions = int64_t{1} << 24;

// O(instructions).
std::string EncodeSchedule(const Schedule& schedule);

// Takes only what EncodeSchedule writes for at most `max_instructions`: INVALID_ARGUMENT otherwise.
absl::StatusOr<Schedule> DecodeSchedule(const std::string& code, int64_t max_instructions);

// Whether DecodeSchedule would take it. A few bytes may stand for many instructions: this takes no
// memory and O(bytes).
absl::Status CheckScheduleCode(const std::string& code, int64_t max_instructions);

// A schedule that many hold and few read, as in a frontier: shared between copies, and in a tenth to a twentieth of the
// memory that its instructions take, so that a service may keep thousands of frontiers. Immutable and thread-safe.
class PackedSchedule {
 public:
  PackedSchedule() : PackedSchedule(Schedule()) {}
  // O(instructions).
  explicit PackedSchedule(const Schedule& schedule)
      : code_(std::make_shared<const std::string>(EncodeSchedule(schedule))) {}
  // From where schedules are stored. INVALID_ARGUMENT as CheckScheduleCode.
  static absl::StatusOr<PackedSchedule> FromCode(std::string code);

  // O(instructions).
  Schedule Unpack() const;
  // What EncodeSchedule writes: for where schedules are stored.
  const std::string& code() const { return *code_; }
  // Of memory, whoever shares it.
  int64_t bytes() const { return static_cast<int64_t>(sizeof(std::string) + code_->capacity()); }

 private:
  std::shared_ptr<const std::string> code_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_SCHEDULE_H_
