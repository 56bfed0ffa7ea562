// Help of `stowage` as text, and as a page for man, both from the table of commands.
#ifndef STOWAGE_CLIENT_CLI_HELP_TEXT_H_
#define STOWAGE_CLIENT_CLI_HELP_TEXT_H_

#include <string>
#include <vector>

#include "client/cli/commands.h"

namespace stowage {

// Of the program: its commands and exit codes.
std::string ProgramHelp(const std::vector<Command>& commands);
// Of a command that has actions: these.
std::string GroupHelp(const Command& group);
// Of a command: flags with their defaults, examples. `words` are those of the command, "cache ls".
std::string CommandHelp(const std::string& words, const Command& command);
// Of `stowage completion`.
std::string CompletionHelp();

// Everything, in roff: `stowage help --man | man -l -`.
std::string ManPage(const std::vector<Command>& commands);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_HELP_TEXT_H_
