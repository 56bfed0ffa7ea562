// A short encoding of schedules, for caches that hold many of them.
//
// Schedules are mostly sweeps over neighbouring stages, so runs are stored: one head byte, then two
// variable-length integers (7 bits to a byte, low ones first):
//   head     op (bits 0-3), tensor (bit 4), direction (bit 5: stages fall), stream (bits 6-7)
//   stage    of the first instruction, as the zigzag difference to the last one's stage
//   count    of instructions in the run, less one; stages change by one from each to the next
// Before a run of instructions that move a part stand the byte 15 and the part, such an integer.
// A schedule has one encoding. It says nothing of the chain: whoever decodes lets the referee judge.
#ifndef STOWAGE_SOLVERS_PLAN_SCHEDULE_CODE_H_
#define STOWAGE_SOLVERS_PLAN_SCHEDULE_CODE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Of a schedule that is kept encoded: many times what the longest that solvers make have.
inline constexpr int64_t kMaxInstructions = int64_t{1} << 24;

// O(instructions).
std::string EncodeSchedule(const Schedule& schedule);

// Takes only what EncodeSchedule writes for at most `max_instructions`: INVALID_ARGUMENT otherwise.
absl::StatusOr<Schedule> DecodeSchedule(const std::string& code, int64_t max_instructions);

// Whether DecodeSchedule would take it. A few bytes may stand for many instructions: this takes no
// memory and O(bytes).
absl::Status CheckScheduleCode(const std::string& code, int64_t max_instructions);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_SCHEDULE_CODE_H_
