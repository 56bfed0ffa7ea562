#include "client/cli/completion.h"

#include <set>

#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/completion_tables.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

std::vector<CompletedWord> WordsOf(const std::vector<Command>& commands) {
  std::vector<CompletedWord> words;
  for (const Command& command : commands) {
    words.push_back({command.name, command.summary});
  }
  return words;
}

void AddPlaces(const std::vector<Command>& commands, const std::string& before,
               std::vector<CompletedPlace>* places) {
  places->push_back({before, WordsOf(commands), {}});
  for (const Command& command : commands) {
    const std::string words = absl::StrCat(before, before.empty() ? "" : " ", command.name);
    if (command.commands.empty()) {
      places->push_back({words, {}, command.flags, command.words});
    } else {
      AddPlaces(command.commands, words, places);
    }
  }
}

}  // namespace

CompletionTables TablesOf(const std::vector<Command>& commands) {
  CompletionTables tables;
  AddPlaces(commands, "", &tables.places);
  std::vector<CompletedWord> shells;
  for (const std::string& shell : CompletedShells()) shells.push_back({shell, "script for it"});
  tables.places.front().next.push_back({"help", "help of a command"});
  tables.places.front().next.push_back({"completion", "a script for a shell"});
  tables.places.push_back({"help", WordsOf(commands), {}});
  tables.places.push_back({"completion", shells, {}});
  std::set<std::string> seen;
  for (const CompletedPlace& place : tables.places) {
    for (const std::string& flag : place.flags) {
      if (!seen.insert(flag).second) continue;
      tables.flags.push_back({flag, absl::FindCommandLineFlag(flag)->Help(), ValuesOf(flag)});
    }
  }
  return tables;
}

const std::vector<std::string>& CompletedShells() {
  static const auto* const kShells = new std::vector<std::string>{"bash", "zsh", "fish"};
  return *kShells;
}

absl::StatusOr<std::string> CompletionScript(const std::vector<Command>& commands,
                                             const std::string& shell) {
  if (shell == "bash") return BashCompletion(TablesOf(commands));
  if (shell == "zsh") return ZshCompletion(TablesOf(commands));
  if (shell == "fish") return FishCompletion(TablesOf(commands));
  return FieldError("shell", shell,
                    absl::StrCat("must be ", absl::StrJoin(CompletedShells(), " or ")));
}

}  // namespace stowage
