#include "client/cli/command_line.h"

#include <algorithm>
#include <cstddef>
#include <iostream>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/completion.h"
#include "client/cli/exit_code.h"
#include "client/cli/help_text.h"
#include "client/cli/torch_program.h"
#include "solvers/base/flag_parser.h"
#include "solvers/base/version.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

using Arguments = std::vector<std::string>;

bool AsksForHelp(const std::string& argument) {
  return argument == "--help" || argument == "-h" || argument == "help";
}

Arguments After(const Arguments& arguments) { return {arguments.begin() + 1, arguments.end()}; }

// The same arguments, all of them flags: those before the first flag are the operands.
Arguments WithOperandsAsFlags(const Command& command, Arguments arguments) {
  for (size_t i = 0; i < std::min(arguments.size(), command.operands.size()); ++i) {
    if (absl::StartsWith(arguments[i], "-")) break;
    arguments[i] = absl::StrCat("--", command.operands[i], "=", arguments[i]);
  }
  return arguments;
}

int RunCommand(const std::string& words, const Command& command, const Arguments& arguments) {
  for (const FlagValue& value : command.defaults) SetFlag(value, value.name).IgnoreError();
  const absl::StatusOr<bool> help =
      ParseFlags(WithOperandsAsFlags(command, arguments), command.flags);
  if (!help.ok()) {
    std::cerr << "stowage " << words << ": " << help.status().message() << "\n";
    return kExitUsage;
  }
  if (!*help) {
    if (command.run != nullptr) return command.run();
    Arguments all = {words};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return BecomeTorchProgram(all);
  }
  std::cout << CommandHelp(words, command);
  return kExitOk;
}

const Command* Find(const std::vector<Command>& commands, const std::string& name) {
  for (const Command& command : commands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

int Unknown(const std::string& what, const std::string& name, const std::string& words) {
  std::cerr << "stowage" << words << ": unknown " << what << " " << name << " (see stowage" << words
            << " --help)\n";
  return kExitUsage;
}

int RunGroup(const Command& group, const Arguments& arguments) {
  if (arguments.empty() || AsksForHelp(arguments[0])) {
    (arguments.empty() ? std::cerr : std::cout) << GroupHelp(group);
    return arguments.empty() ? kExitUsage : kExitOk;
  }
  if (const Command* action = Find(group.commands, arguments[0])) {
    return RunCommand(absl::StrCat(group.name, " ", action->name), *action, After(arguments));
  }
  return Unknown("action", arguments[0], absl::StrCat(" ", group.name));
}

// `stowage help [COMMAND [ACTION]]`, `stowage help --man`.
int Help(const std::vector<Command>& commands, const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--man") {
    std::cout << (arguments.empty() ? ProgramHelp(commands) : ManPage(commands));
    return kExitOk;
  }
  if (arguments[0] == "help") return Help(commands, {});
  if (arguments[0] == "completion") {
    std::cout << CompletionHelp();
    return kExitOk;
  }
  const Command* command = Find(commands, arguments[0]);
  if (command == nullptr) return Unknown("command", arguments[0], "");
  std::string words = command->name;
  if (!command->commands.empty() && arguments.size() > 1) {
    command = Find(command->commands, arguments[1]);
    if (command == nullptr) return Unknown("action", arguments[1], " " + words);
    absl::StrAppend(&words, " ", command->name);
  }
  std::cout << (command->commands.empty() ? CommandHelp(words, *command) : GroupHelp(*command));
  return kExitOk;
}

int Completion(const std::vector<Command>& commands, const Arguments& arguments) {
  if (!arguments.empty() && AsksForHelp(arguments[0])) return Help(commands, {"completion"});
  const absl::StatusOr<std::string> script =
      CompletionScript(commands, arguments.empty() ? "" : arguments[0]);
  if (!script.ok()) return Fail(script.status());
  std::cout << *script;
  return kExitOk;
}

}  // namespace

int RunCommandLine(const std::vector<Command>& commands, const Arguments& arguments) {
  if (arguments.empty()) {
    std::cerr << ProgramHelp(commands);
    return kExitUsage;
  }
  if (AsksForHelp(arguments[0])) return Help(commands, After(arguments));
  if (arguments[0] == "--version") {
    std::cout << "stowage " << kVersion << " (solvers " << kSolverVersion << ")\n";
    return kExitOk;
  }
  if (arguments[0] == "completion") return Completion(commands, After(arguments));
  const Command* command = Find(commands, arguments[0]);
  if (command == nullptr) return Unknown("command", arguments[0], "");
  return command->commands.empty() ? RunCommand(command->name, *command, After(arguments))
                                   : RunGroup(*command, After(arguments));
}

}  // namespace stowage
