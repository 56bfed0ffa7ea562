#include "client/cli/command_line.h"

#include <cstring>
#include <iostream>

#include "absl/status/statusor.h"
#include "client/cli/exit_code.h"
#include "solvers/base/flag_parser.h"

namespace stowage {
namespace {

bool IsMissing(const Command& command) { return command.missing[0] != '\0'; }

void PrintHelp(const std::vector<Command>& commands, std::ostream& out) {
  out << "usage: stowage COMMAND [--flag=value ...]\n\n"
         "Fits the training of deep networks into a memory budget.\n\n";
  for (const Command& command : commands) {
    out << "  " << command.name << std::string(10 - std::strlen(command.name), ' ')
        << command.summary;
    if (IsMissing(command)) out << " (not in this build)";
    out << "\n";
  }
  out << "\n`stowage COMMAND --help` lists the flags of a command.\n"
         "Exit codes: 0 ok, 2 usage or bad input, 3 infeasible, 4 deadline, 5 unavailable, 1 "
         "anything else.\n";
}

void PrintHelp(const Command& command) {
  std::cout << "usage: stowage " << command.name << " [--flag=value ...]\n\n"
            << command.summary << "\n\n"
            << FlagHelp(command.flags);
  if (!command.examples.empty()) std::cout << "\nExamples:\n";
  for (const std::string& example : command.examples) {
    std::cout << "  stowage " << example << "\n";
  }
}

int RunCommand(const Command& command, const std::vector<std::string>& arguments) {
  if (IsMissing(command)) {
    std::cerr << "stowage " << command.name << ": " << command.missing << "\n";
    return kExitUsage;
  }
  const absl::StatusOr<bool> help = ParseFlags(arguments, command.flags);
  if (!help.ok()) {
    std::cerr << "stowage " << command.name << ": " << help.status().message() << "\n";
    return kExitUsage;
  }
  if (!*help) return command.run();
  PrintHelp(command);
  return kExitOk;
}

}  // namespace

int RunCommandLine(const std::vector<Command>& commands,
                   const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    PrintHelp(commands, std::cerr);
    return kExitUsage;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    PrintHelp(commands, std::cout);
    return kExitOk;
  }
  for (const Command& command : commands) {
    if (arguments[0] == command.name) {
      return RunCommand(command, {arguments.begin() + 1, arguments.end()});
    }
  }
  std::cerr << "stowage: unknown command " << arguments[0] << " (see stowage --help)\n";
  return kExitUsage;
}

}  // namespace stowage
