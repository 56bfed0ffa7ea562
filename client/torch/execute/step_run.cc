#include "client/torch/execute/step_run.h"

#include <ATen/record_function.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/offload/device_use.h"

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

absl::Status CheckIsOn(const ExecutionDevice& device, const at::Tensor& tensor,
                       const std::string& what) {
  if (device.IsCapturing()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the work of ", device.device().str(),
        " is being captured in a graph, and a planned step reads random states and the "
        "loss on the host, which a capture forbids: run it outside of the capture"));
  }
  if (tensor.device() == device.device()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " is on ", tensor.device().str(),
                                                 ", the device to train on is ",
                                                 device.device().str()));
}

namespace {

// The name is made only for those who listen.
void RunLabelled(const Instruction& instruction, const InstructionRunner& runner) {
  std::string name;
  at::RecordFunction scope(at::RecordScope::USER_SCOPE);
  if (scope.isActive()) {
    name =
        absl::StrCat("stowage ", ToString(instruction), ", ", runner.describe(instruction.stage));
    scope.before(name);
  }
  runner.run(instruction);
}

}  // namespace

absl::Status CurrentInstructionFailure(const Schedule& schedule, size_t index,
                                       const InstructionRunner& runner) {
  const Op op = schedule[index].op;
  if (runner.thrown != nullptr && (IsForward(op) || op == Op::kBackward)) {
    *runner.thrown = std::current_exception();
  }
  const StepFailure failure = CurrentStepFailure(index, runner.device);
  absl::Status status =
      CurrentExceptionToStatus(absl::StrCat("instruction ", index, " (", ToString(schedule[index]),
                                            "), ", runner.describe(schedule[index].stage)),
                               absl::StatusCode::kInternal);
  SetStepFailure(failure, &status);
  return status;
}

absl::Status RunInstructions(const Schedule& schedule, size_t end, const InstructionRunner& runner,
                             size_t* next, StepReport* report) {
  const DeviceUse use(runner.device->device());
  for (; *next < end; ++*next) {
    const Instruction& instruction = schedule[*next];
    try {
      if (runner.recorder != nullptr) runner.recorder->Start();
      RunLabelled(instruction, runner);
      if (runner.recorder != nullptr) runner.recorder->Stop();
    } catch (...) {
      return CurrentInstructionFailure(schedule, *next, runner);
    }
    ++report->counts[static_cast<size_t>(instruction.op)];
  }
  return absl::OkStatus();
}

}  // namespace stowage
