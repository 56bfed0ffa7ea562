// The subcommands of `stowage`. Each takes its arguments without its own name and returns an exit
// code (exit_code.h).
#ifndef STOWAGE_CLIENT_CLI_COMMANDS_H_
#define STOWAGE_CLIENT_CLI_COMMANDS_H_

#include <string>
#include <vector>

namespace stowage {

struct Command {
  const char* name;
  const char* summary;
  std::vector<std::string> flags;  // the ones of flags.h that it takes
  int (*run)();
};

Command ProfileCommand();
Command PlanCommand();
Command RunCommand();
Command VerifyCommand();
Command SolversCommand();
Command DoctorCommand();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMMANDS_H_
