#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/cli/exit_code.h"
#include "client/cli/help_text.h"
#include "solvers/base/flag_parser.h"
#include "solvers/base/version.h"

namespace stowage {
namespace {

// Text that roff takes as it is.
std::string Roff(const std::string& text) {
  const std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  const bool control = absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'");
  return control ? absl::StrCat("\\&", escaped) : escaped;
}

void AppendCommand(const std::string& words, const Command& command, std::string* page) {
  absl::StrAppend(page, ".SS stowage ", Roff(words), "\n", Roff(command.summary), ".\n");
  for (const std::string& name : command.flags) {
    absl::StrAppend(page, ".TP\n.B \\-\\-", Roff(name),
                    "\\fR=", Roff(DefaultOf(name, command.defaults)), "\n",
                    Roff(HelpOf(name, command.meanings)), ".\n");
  }
  for (const std::string& example : command.examples) {
    absl::StrAppend(page, ".PP\n.EX\nstowage ", Roff(example), "\n.EE\n");
  }
  for (const Command& action : command.commands) {
    AppendCommand(absl::StrCat(words, " ", action.name), action, page);
  }
}

}  // namespace

std::string ManPage(const std::vector<Command>& commands) {
  std::string page = absl::StrCat(
      ".TH STOWAGE 1 \"\" \"stowage ", kVersion,
      "\"\n.SH NAME\nstowage \\- fits the training of deep networks into a memory budget\n"
      ".SH SYNOPSIS\n.B stowage\n.I COMMAND\n[\\-\\-flag=value ...]\n"
      ".SH DESCRIPTION\nPlans which activations to keep, to recompute and to offload, so that a "
      "training step stays within a budget of memory and loses the least time. Data goes to "
      "standard output, notices to standard error.\n.SH COMMANDS\n");
  for (const Command& command : commands) AppendCommand(command.name, command, &page);
  page += ".SH EXIT STATUS\n";
  for (const ExitCodeMeaning& code : ExitCodeMeanings()) {
    absl::StrAppend(&page, ".TP\n", static_cast<int>(code.code), "\n", Roff(code.meaning), ".\n");
  }
  return page;
}

}  // namespace stowage
