// What a step by a schedule took when it was carried out, instruction by instruction: what executors
// measure, beside the TimelinePoint that the evaluator predicts.
#ifndef STOWAGE_SOLVERS_SCHEDULE_MEASURED_STEP_H_
#define STOWAGE_SOLVERS_SCHEDULE_MEASURED_STEP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/digest.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Of compute, from the start of the step on: the next instruction never starts before this one's end. So
// the start of a copy is the time step at which compute has asked for it, not the copy, which has ended
// when the wait for it has.
struct MeasuredInstruction {
  Nanos start;
  Nanos end;
  // Live on the device, counted as MeasuredStep::peak is: most while it ran, and after it.
  Bytes peak;
  Bytes held_after;

  friend bool operator==(const MeasuredInstruction& a, const MeasuredInstruction& b) {
    return a.start == b.start && a.end == b.end && a.peak == b.peak && a.held_after == b.held_after;
  }
};

struct MeasuredStep {
  Digest schedule;  // ScheduleDigest of what was carried out
  std::vector<MeasuredInstruction> instructions;
  // Highest memory of the step, the input counted, what was live before it not.
  Bytes peak;
  Nanos step_time;  // as the host saw it: not less than the last end where it waits for the device

  friend bool operator==(const MeasuredStep& a, const MeasuredStep& b) {
    return a.schedule == b.schedule && a.instructions == b.instructions && a.peak == b.peak &&
           a.step_time == b.step_time;
  }
};

// OK if it is of this schedule; else INVALID_ARGUMENT. O(instructions).
absl::Status CheckMeasuredStep(const MeasuredStep& step, const Schedule& schedule);

// As a file:
//   stowage-measured-step 2
//   schedule <64 hexadecimal digits>
//   peak_bytes <n>
//   step_time_ns <n>
//   instructions <n>
//   <start_ns> <end_ns> <peak_bytes> <held_after_bytes>     as often as there are instructions
// Each line ends in a newline. A step has one text. O(instructions).
std::string MeasuredStepText(const MeasuredStep& step);

// Takes only what MeasuredStepText writes of a step whose numbers are not negative, with times below
// kMaxTimeTotal, sizes below kMaxTotal, no more held after an instruction than while it ran, and
// instructions one after the other; FieldError that names the line otherwise. O(bytes).
absl::StatusOr<MeasuredStep> ParseMeasuredStep(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_MEASURED_STEP_H_
