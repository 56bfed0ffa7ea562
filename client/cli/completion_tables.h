// What completion scripts of all shells say, without any shell's syntax. Internal to client/cli.
#ifndef STOWAGE_CLIENT_CLI_COMPLETION_TABLES_H_
#define STOWAGE_CLIENT_CLI_COMPLETION_TABLES_H_

#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "client/cli/flag_values.h"

namespace stowage {

struct CompletedWord {
  std::string word;
  std::string summary;
};

// Where the words so far have led to: nowhere yet (""), "plan", "cache", "cache ls".
struct CompletedPlace {
  std::string words;
  std::vector<CompletedWord> next;  // commands or actions
  std::vector<std::string> flags;
  std::vector<FlagWords> words_of = {};  // of flags that take other words here than elsewhere
};

struct CompletedFlag {
  std::string name;
  std::string help;
  FlagValues values;
};

struct CompletionTables {
  std::vector<CompletedPlace> places;
  std::vector<CompletedFlag> flags;  // of all places, each once
};

CompletionTables TablesOf(const std::vector<Command>& commands);

std::string BashCompletion(const CompletionTables& tables);
std::string ZshCompletion(const CompletionTables& tables);
std::string FishCompletion(const CompletionTables& tables);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_COMPLETION_TABLES_H_
