#include "client/cli/command_line.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iostream>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "solvers/base/flag_parser.h"

namespace stowage {
namespace {

bool IsMissing(const Command& command) { return command.missing[0] != '\0'; }

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

void PrintCommands(const std::vector<Command>& commands, std::ostream& out) {
  for (const Command& command : commands) {
    out << "  " << command.name << std::string(10 - std::strlen(command.name), ' ')
        << command.summary;
    if (IsMissing(command)) out << " (not in this build)";
    out << "\n";
  }
}

void PrintHelp(const std::vector<Command>& commands, std::ostream& out) {
  out << "usage: stowage COMMAND [--flag=value ...]\n\n"
         "Fits the training of deep networks into a memory budget.\n\n";
  PrintCommands(commands, out);
  out << "\n`stowage COMMAND --help` lists the flags of a command.\n"
         "Exit codes: 0 ok, 2 usage or bad input, 3 infeasible, 4 deadline, 5 unavailable, 1 "
         "anything else.\n";
}

void PrintGroup(const Command& group, std::ostream& out) {
  out << "usage: stowage " << group.name << " ACTION [--flag=value ...]\n\n"
      << group.summary << "\n\n";
  PrintCommands(group.commands, out);
  out << "\n`stowage " << group.name << " ACTION --help` lists the flags of an action.\n";
}

// `words` are those of the command, "cache ls".
void PrintHelp(const std::string& words, const Command& command) {
  std::cout << "usage: stowage " << words;
  for (const std::string& operand : command.operands) {
    std::cout << " [" << absl::AsciiStrToUpper(operand) << "]";
  }
  std::cout << " [--flag=value ...]\n\n" << command.summary << "\n\n" << FlagHelp(command.flags);
  if (!command.examples.empty()) std::cout << "\nExamples:\n";
  for (const std::string& example : command.examples) {
    std::cout << "  stowage " << example << "\n";
  }
}

// The same arguments, all of them flags: those before the first flag are the operands.
std::vector<std::string> WithOperandsAsFlags(const Command& command,
                                             std::vector<std::string> arguments) {
  for (size_t i = 0; i < std::min(arguments.size(), command.operands.size()); ++i) {
    if (absl::StartsWith(arguments[i], "-")) break;
    arguments[i] = absl::StrCat("--", command.operands[i], "=", arguments[i]);
  }
  return arguments;
}

int RunCommand(const std::string& words, const Command& command,
               const std::vector<std::string>& arguments) {
  if (IsMissing(command)) {
    std::cerr << "stowage " << words << ": " << command.missing << "\n";
    return kExitUsage;
  }
  const absl::StatusOr<bool> help =
      ParseFlags(WithOperandsAsFlags(command, arguments), command.flags);
  if (!help.ok()) {
    std::cerr << "stowage " << words << ": " << help.status().message() << "\n";
    return kExitUsage;
  }
  if (!*help) return command.run();
  PrintHelp(words, command);
  return kExitOk;
}

const Command* Find(const std::vector<Command>& commands, const std::string& name) {
  for (const Command& command : commands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

int RunGroup(const Command& group, const std::vector<std::string>& arguments) {
  if (arguments.empty() || AsksForHelp(arguments[0])) {
    PrintGroup(group, arguments.empty() ? std::cerr : std::cout);
    return arguments.empty() ? kExitUsage : kExitOk;
  }
  if (const Command* action = Find(group.commands, arguments[0])) {
    return RunCommand(absl::StrCat(group.name, " ", action->name), *action,
                      {arguments.begin() + 1, arguments.end()});
  }
  std::cerr << "stowage " << group.name << ": unknown action " << arguments[0] << " (see stowage "
            << group.name << " --help)\n";
  return kExitUsage;
}

}  // namespace

int RunCommandLine(const std::vector<Command>& commands,
                   const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    PrintHelp(commands, std::cerr);
    return kExitUsage;
  }
  if (AsksForHelp(arguments[0])) {
    PrintHelp(commands, std::cout);
    return kExitOk;
  }
  if (const Command* command = Find(commands, arguments[0])) {
    const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
    return command->commands.empty() ? RunCommand(command->name, *command, rest)
                                     : RunGroup(*command, rest);
  }
  std::cerr << "stowage: unknown command " << arguments[0] << " (see stowage --help)\n";
  return kExitUsage;
}

}  // namespace stowage
