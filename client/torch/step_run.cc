#include "client/torch/step_run.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "client/torch/torch_status.h"

namespace stowage {
absl::Status CheckCarriedOut(const Schedule& schedule, const ExecutionDevice& device) {
  for (size_t i = 0; i < schedule.size(); ++i) {
    const auto name = [&] {
      return absl::StrCat("instruction ", i, " (", ToString(schedule[i]), "): ");
    };
    if (schedule[i].stream == Stream::kCommunication) {
      return absl::UnimplementedError(
          absl::StrCat(name(), "communication beside compute is not carried out here"));
    }
    if (IsTransfer(schedule[i].op) && device.link() == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat(name(), "the device has no link to host memory"));
    }
  }
  return absl::OkStatus();
}

absl::Status RunInstructions(const Schedule& schedule, size_t end,
                             const std::function<void(const Instruction&)>& run,
                             const std::function<std::string(int)>& describe, size_t* next,
                             StepReport* report) {
  for (; *next < end; ++*next) {
    const Instruction& instruction = schedule[*next];
    try {
      run(instruction);
    } catch (...) {
      return CurrentExceptionToStatus(
          absl::StrCat("instruction ", *next, " (", ToString(instruction), "), ",
                       describe(instruction.stage)),
          absl::StatusCode::kInternal);
    }
    ++report->counts[static_cast<size_t>(instruction.op)];
  }
  return absl::OkStatus();
}

}  // namespace stowage
