// The subcommands of `stowage`.
#ifndef STOWAGE_CLIENT_CLI_COMMANDS_H_
#define STOWAGE_CLIENT_CLI_COMMANDS_H_

#include <string>
#include <vector>

namespace stowage {

struct Command {
  const char* name;
  const char* summary;
  std::vector<std::string> flags;  // all that it takes, by name
  int (*run)();                    // returns an exit code (exit_code.h)
  // What a user may type as it stands, after "stowage "; a test runs each, in the order of main.cc.
  std::vector<std::string> examples = {};
  // Why this build cannot run it; empty if it can.
  const char* missing = "";
};

Command ProfileCommand();
Command PlanCommand();
Command RunCommand();
Command VerifyCommand();
Command SolversCommand();
Command DoctorCommand();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMMANDS_H_
