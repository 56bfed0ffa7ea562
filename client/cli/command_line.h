// From a command line to the command that it names.
#ifndef STOWAGE_CLIENT_CLI_COMMAND_LINE_H_
#define STOWAGE_CLIENT_CLI_COMMAND_LINE_H_

#include <string>
#include <vector>

#include "client/cli/commands.h"

namespace stowage {

// Reads the arguments, without the program's name, into flags and runs the command that the first of them
// names. Returns the exit code (exit_code.h). Help goes to standard output, complaints to standard error.
int RunCommandLine(const std::vector<Command>& commands, const std::vector<std::string>& arguments);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMMAND_LINE_H_
