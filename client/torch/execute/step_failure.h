// Where and for want of what a step by a schedule ended: travels with its Status, beside the message.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_STEP_FAILURE_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_STEP_FAILURE_H_

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "client/torch/memory/memory_refusal.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/units.h"

namespace stowage {

enum class StepFault {
  kOther,
  kDeviceMemory,  // there was none for a tensor
  kHostMemory,    // there was none for what was to leave the device
  kImmovable,     // what a stage or vertex holds cannot go to the host as the plan has it
};

struct StepFailure {
  StepFault fault = StepFault::kOther;
  size_t instruction = 0;  // of the schedule
  // Of the device: at the instant when memory was refused, as the device or the allocator's error has it
  // (MemoryRefusal); where they say nothing, and of other faults, when the instruction had failed and let go of what it held.
  Bytes allocated;  // to all that is live
  Bytes reserved;
  Bytes asked;  // kDeviceMemory: for the tensor, as far as the allocator says; 0 if it does not
  Bytes limit;  // of what could be reserved; 0 if there is none or it is not known
  // Live when the instruction had failed and let go of what it held: of a forward, what was live when it
  // began.
  Bytes live_after;
  Bytes rounding;  // that the four above together may be off, since errors round
};

// Of a status that an executor returned for an instruction; nothing for any other.
std::optional<StepFailure> GetStepFailure(const absl::Status& status);

// The exception that is being handled, to be called in a catch block only, as the failure of an
// instruction on the device.
StepFailure CurrentStepFailure(size_t instruction, ExecutionDevice* device);
// The same where memory was refused and nobody here has caught the exception.
StepFailure RefusedStepFailure(size_t instruction, const MemoryRefusal& refusal,
                               ExecutionDevice* device);
// Writes it onto a status that is an error.
void SetStepFailure(const StepFailure& failure, absl::Status* status);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_STEP_FAILURE_H_
