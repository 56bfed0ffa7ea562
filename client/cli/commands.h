// The subcommands of `stowage`.
#ifndef STOWAGE_CLIENT_CLI_COMMANDS_H_
#define STOWAGE_CLIENT_CLI_COMMANDS_H_

#include <string>
#include <vector>

#include "solvers/base/flag_parser.h"

namespace stowage {

struct FlagWords {
  std::string flag;
  std::vector<std::string> words;
};

struct Command {
  const char* name;
  const char* summary;
  std::vector<std::string> flags;  // all that it takes, by name
  // Returns an exit code (exit_code.h). Null: stowage-torch runs it (torch_program.h).
  int (*run)();
  // What a user may type as it stands, after "stowage "; a test runs each, in the order of main.cc.
  std::vector<std::string> examples = {};
  // What arguments before all flags are the values of, in this order: `stowage cache get KEY`.
  std::vector<std::string> operands = {};
  // Of a group, `stowage cache ls`, which has nothing else but name and summary; a group in a group is not read.
  std::vector<Command> commands = {};
  // Of flags that have another default here.
  std::vector<FlagValue> defaults = {};
  // Of flags that mean something else here: what its help says of them.
  std::vector<FlagValue> meanings = {};
  // What shells offer for flags that take other words here than elsewhere.
  std::vector<FlagWords> words = {};
};

// Those that measure and train: training_commands.h.
Command PlanCommand();
Command FrontierCommand();
Command ExplainCommand();
Command CompareCommand();
Command PipelineCommand();
Command CheckpointsCommand();
Command ReportCommand();
Command TraceCommand();
Command SolversCommand();
Command DoctorCommand();
Command CacheCommand();
Command DecisionsCommand();
Command FitCommand();
Command CatalogueCommand();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMMANDS_H_
