#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "solvers/base/flag_parser.h"

namespace {

using stowage::Command;

std::vector<Command> Commands() {
  return {stowage::ProfileCommand(), stowage::PlanCommand(),    stowage::RunCommand(),
          stowage::VerifyCommand(),  stowage::SolversCommand(), stowage::DoctorCommand()};
}

void PrintHelp(std::ostream& out) {
  out << "usage: stowage COMMAND [--flag=value ...]\n\n"
         "Fits the training of deep networks into a memory budget.\n\n";
  for (const Command& command : Commands()) {
    out << "  " << command.name << std::string(10 - std::strlen(command.name), ' ')
        << command.summary << "\n";
  }
  out << "\n`stowage COMMAND --help` lists the flags of a command.\n"
         "Exit codes: 0 ok, 2 usage or bad input, 3 infeasible, 4 deadline, 5 unavailable, 1 "
         "anything else.\n";
}

int RunCommand(const Command& command, const std::vector<std::string>& arguments) {
  const absl::StatusOr<bool> help = stowage::ParseFlags(arguments, command.flags);
  if (!help.ok()) {
    std::cerr << "stowage " << command.name << ": " << help.status().message() << "\n";
    return stowage::kExitUsage;
  }
  if (!*help) return command.run();
  std::cout << "usage: stowage " << command.name << " [--flag=value ...]\n\n"
            << command.summary << "\n\n"
            << stowage::FlagHelp(command.flags);
  return stowage::kExitOk;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    PrintHelp(std::cerr);
    return stowage::kExitUsage;
  }
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    PrintHelp(std::cout);
    return stowage::kExitOk;
  }
  for (const Command& command : Commands()) {
    if (arguments[0] == command.name)
      return RunCommand(command, {arguments.begin() + 1, arguments.end()});
  }
  std::cerr << "stowage: unknown command " << arguments[0] << " (see stowage --help)\n";
  return stowage::kExitUsage;
}
