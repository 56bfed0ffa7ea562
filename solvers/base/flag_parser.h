// Reads a command line into Abseil's flags. Abseil's own parser ends the process with code 1 for
// --help and errors alike, and lists flags of linked libraries; programs here want 0, a code of
// their own for mistakes, and their own flags only. Of both binaries, hence in the one folder below
// both.
#ifndef STOWAGE_SOLVERS_BASE_FLAG_PARSER_H_
#define STOWAGE_SOLVERS_BASE_FLAG_PARSER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stowage {

struct FlagValue {
  std::string name;
  std::string value;
};

struct CommandLine {
  bool help = false;              // --help was asked for: what follows it was not read
  std::vector<FlagValue> values;  // in their order
};

// Reads as ParseFlags does, and sets nothing: values are not looked at.
absl::StatusOr<CommandLine> ReadCommandLine(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& names);

// Sets one flag that exists. INVALID_ARGUMENT that begins with `origin`, which says where the value
// was given.
absl::Status SetFlag(const FlagValue& flag, const std::string& origin);

// Sets the flags among `names` that `arguments` (without the program's name) give, as --name=value
// or "--name value"; booleans as --name or --name=value. True when --help was asked for.
// INVALID_ARGUMENT for anything else.
absl::StatusOr<bool> ParseFlags(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& names);

// Whether the last ParseFlags has set it, be it to its default. Not thread-safe beside ParseFlags.
bool IsFlagGiven(const std::string& name);

// The flag's own default, or what `defaults` says instead.
std::string DefaultOf(const std::string& name, const std::vector<FlagValue>& defaults);

// The flag's own help, or what `meanings` says instead.
std::string HelpOf(const std::string& name, const std::vector<FlagValue>& meanings);

// What --help prints: one paragraph per flag, with its default and its help, or what `defaults` and `meanings`
// say instead.
std::string FlagHelp(const std::vector<std::string>& names,
                     const std::vector<FlagValue>& defaults = {},
                     const std::vector<FlagValue>& meanings = {});

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_FLAG_PARSER_H_
