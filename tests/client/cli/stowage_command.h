// Runs the `stowage` command as a user does.
#ifndef STOWAGE_TESTS_CLIENT_CLI_STOWAGE_COMMAND_H_
#define STOWAGE_TESTS_CLIENT_CLI_STOWAGE_COMMAND_H_

#include <string>

namespace stowage {

struct Result {
  int code = -1;    // 128 and the signal that ended it
  std::string out;  // standard output; standard error too where asked for
};

// `arguments` go through the shell.
Result Stowage(const std::string& arguments, bool with_errors = false);

// The same on a terminal of its own: what that shows of standard output and standard error.
Result StowageOnTerminal(const std::string& arguments);

// A shell command in a folder, with `stowage` in its path: standard output and standard error.
Result Shell(const std::string& command, const std::string& folder);

// Of a file in tests/data.
std::string Data(const std::string& file);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_CLI_STOWAGE_COMMAND_H_
