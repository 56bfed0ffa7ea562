// What executors of chains and of graphs have in common.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_STEP_RUN_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_STEP_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "client/torch/execute/step_recorder.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// UNIMPLEMENTED that names the first instruction on the communication stream, FAILED_PRECONDITION that
// names the first transfer if the device has no link.
absl::Status CheckCarriedOut(const Schedule& schedule, const ExecutionDevice& device);

// FAILED_PRECONDITION while the device's work is captured; INVALID_ARGUMENT unless the tensor is there: "<what> is on meta,
// the device to train on is cpu".
absl::Status CheckIsOn(const ExecutionDevice& device, const at::Tensor& tensor,
                       const std::string& what);

// Who carries instructions out.
struct InstructionRunner {
  ExecutionDevice* device;
  std::function<void(const Instruction&)> run;
  std::function<std::string(int)> describe;  // a stage, for people
  StepRecorder* recorder = nullptr;          // of each instruction; null: of none
  std::exception_ptr* thrown = nullptr;  // where a forward's or backward's is left; null: nowhere
};

// The exception that is being handled, which instruction number `index` threw, as a Status that names it, with its
// StepFailure. To be called in a catch block only.
absl::Status CurrentInstructionFailure(const Schedule& schedule, size_t index,
                                       const InstructionRunner& runner);

// Hands the instructions from `*next` up to, not with, `end` to the runner, one by one, and counts them.
// What it throws comes back as a Status that names the instruction, at which `*next` stays, and its stage,
// with its StepFailure. Where somebody listens, a profiler say, each is a user scope of LibTorch
// (at::RecordFunction): "stowage forward-save 3, stage 3 (layer1.0, bottleneck)". A BACKWARD that the caller's own
// backward carries out is the name of the autograd node at which it begins.
absl::Status RunInstructions(const Schedule& schedule, size_t end, const InstructionRunner& runner,
                             size_t* next, StepReport* report);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_STEP_RUN_H_
