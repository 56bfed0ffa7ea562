// The commands that measure and train, as far as they need no LibTorch: names, flags, examples.
//
// `stowage` has them without what they run, so that it starts without LibTorch, and hands them to
// stowage-torch (torch_program.h), which has it (torch_main.cc).
#ifndef STOWAGE_CLIENT_CLI_TRAINING_COMMANDS_H_
#define STOWAGE_CLIENT_CLI_TRAINING_COMMANDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "client/cli/commands.h"

ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(int, threads);
ABSL_DECLARE_FLAG(int, repeats);
ABSL_DECLARE_FLAG(bool, calibrate);
ABSL_DECLARE_FLAG(int, steps);
ABSL_DECLARE_FLAG(bool, arena);
ABSL_DECLARE_FLAG(std::string, link);
ABSL_DECLARE_FLAG(std::string, trace);

namespace stowage {

// What each runs; null in a program without LibTorch.
struct TrainingRuns {
  int (*profile)() = nullptr;
  int (*run)() = nullptr;
  int (*verify)() = nullptr;
};

Command ProfileCommand(const TrainingRuns& runs = {});
Command RunCommand(const TrainingRuns& runs = {});
Command VerifyCommand(const TrainingRuns& runs = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRAINING_COMMANDS_H_
