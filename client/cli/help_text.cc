#include "client/cli/help_text.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/completion.h"
#include "client/cli/exit_code.h"
#include "solvers/base/flag_parser.h"

namespace stowage {
namespace {

std::string ListOf(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    absl::StrAppendFormat(&text, "  %-12s%s\n", command.name, command.summary);
  }
  return text;
}

}  // namespace

std::string ProgramHelp(const std::vector<Command>& commands) {
  std::string text = absl::StrCat(
      "usage: stowage COMMAND [--flag=value ...]\n\n"
      "Fits the training of deep networks into a memory budget.\n\n",
      ListOf(commands));
  const std::pair<const char*, const char*> others[] = {
      {"help", "help of a COMMAND; --man: all of it as a page for man"},
      {"completion", "a script that completes command lines in bash, zsh or fish"},
      {"--version", "which version this is"}};
  for (const auto& [name, summary] : others) {
    absl::StrAppendFormat(&text, "  %-12s%s\n", name, summary);
  }
  text += "\n`stowage help COMMAND` or `stowage COMMAND --help` lists the flags of a command.\n";
  text += "\nExit codes:\n";
  for (const ExitCodeMeaning& code : ExitCodeMeanings()) {
    absl::StrAppendFormat(&text, "  %d  %s\n", code.code, code.meaning);
  }
  return text;
}

std::string GroupHelp(const Command& group) {
  return absl::StrCat("usage: stowage ", group.name, " ACTION [--flag=value ...]\n\n",
                      group.summary, "\n\n", ListOf(group.commands), "\n`stowage help ", group.name,
                      " ACTION` lists the flags of an action.\n");
}

std::string CommandHelp(const std::string& words, const Command& command) {
  std::string text = absl::StrCat("usage: stowage ", words);
  for (const std::string& operand : command.operands) {
    absl::StrAppend(&text, " [", absl::AsciiStrToUpper(operand), "]");
  }
  absl::StrAppend(&text, command.flags.empty() ? "" : " [--flag=value ...]", "\n\n",
                  command.summary, "\n");
  if (!command.flags.empty())
    absl::StrAppend(&text, "\n", FlagHelp(command.flags, command.defaults, command.meanings));
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : command.examples) {
    absl::StrAppend(&text, "  stowage ", example, "\n");
  }
  return text;
}

std::string CompletionHelp() {
  return absl::StrCat("usage: stowage completion ", absl::StrJoin(CompletedShells(), "|"),
                      "\n\na script that completes command lines\n\nExamples:\n",
                      "  source <(stowage completion bash)\n");
}

}  // namespace stowage
