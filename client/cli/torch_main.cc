// The commands that need LibTorch, for stowage-torch (torch_launcher.cc).
#include <ATen/Version.h>
#include <torch/csrc/api/include/torch/version.h>

#include <iostream>

#include "absl/status/status.h"
#include "client/cli/command_line.h"
#include "client/cli/exit_code.h"
#include "client/cli/torch_version.h"
#include "client/cli/training_commands.h"
#include "client/cli/training_session.h"

extern "C" __attribute__((visibility("default"))) int StowageTorchMain(int argc, char** argv) {
  const absl::Status version = stowage::CheckTorchVersion(at::show_config(), TORCH_VERSION);
  if (!version.ok()) return stowage::Fail(version);
  const stowage::TrainingRuns runs = {stowage::RunProfile, stowage::RunTraining,
                                      stowage::RunVerification};
  const int code = stowage::RunCommandLine(
      {stowage::ProfileCommand(runs), stowage::RunCommand(runs), stowage::VerifyCommand(runs)},
      {argv + 1, argv + argc});
  // A full disk is not to look like an answer.
  if (std::cout.flush()) return code;
  return stowage::Fail(absl::UnknownError("cannot write to standard output"));
}
