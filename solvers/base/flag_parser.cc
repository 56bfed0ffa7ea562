#include "solvers/base/flag_parser.h"

#include <algorithm>
#include <set>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

std::set<std::string>& GivenFlags() {
  static auto* const given = new std::set<std::string>;
  return *given;
}

bool IsBoolean(const std::string& name) {
  return absl::FindCommandLineFlag(name)->IsOfType<bool>();
}

const FlagValue* FindValue(const std::string& name, const std::vector<FlagValue>& values) {
  for (const FlagValue& value : values) {
    if (value.name == name) return &value;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<CommandLine> ReadCommandLine(const std::vector<std::string>& arguments,
                                            const std::vector<std::string>& names) {
  CommandLine line;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      line.help = true;
      return line;
    }
    const size_t equals = argument.find('=');
    const bool is_flag = absl::StartsWith(argument, "--");
    const std::string name = argument.substr(0, equals).substr(is_flag ? 2 : 0);
    if (!is_flag || std::find(names.begin(), names.end(), name) == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat("unknown argument ", argument));
    }
    const bool alone = equals == std::string::npos && IsBoolean(name);
    if (!alone && equals == std::string::npos && i + 1 == arguments.size()) {
      return absl::InvalidArgumentError(absl::StrCat(argument, ": value missing"));
    }
    const std::string value = alone                         ? "true"
                              : equals != std::string::npos ? argument.substr(equals + 1)
                                                            : arguments[++i];
    line.values.push_back({name, value});
  }
  return line;
}

absl::Status SetFlag(const FlagValue& flag, const std::string& origin) {
  std::string error;
  if (absl::FindCommandLineFlag(flag.name)->ParseFrom(flag.value, &error)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(origin, "=", flag.value, ": ", error));
}

bool IsFlagGiven(const std::string& name) { return GivenFlags().count(name) > 0; }

absl::StatusOr<bool> ParseFlags(const std::vector<std::string>& arguments,
                                const std::vector<std::string>& names) {
  const absl::StatusOr<CommandLine> line = ReadCommandLine(arguments, names);
  if (!line.ok()) return line.status();
  GivenFlags().clear();
  for (const FlagValue& flag : line->values) {
    if (absl::Status status = SetFlag(flag, "--" + flag.name); !status.ok()) return status;
    GivenFlags().insert(flag.name);
  }
  return line->help;
}

std::string DefaultOf(const std::string& name, const std::vector<FlagValue>& defaults) {
  const FlagValue* own = FindValue(name, defaults);
  return own != nullptr ? own->value : absl::FindCommandLineFlag(name)->DefaultValue();
}

std::string HelpOf(const std::string& name, const std::vector<FlagValue>& meanings) {
  const FlagValue* own = FindValue(name, meanings);
  return own != nullptr ? own->value : absl::FindCommandLineFlag(name)->Help();
}

std::string FlagHelp(const std::vector<std::string>& names, const std::vector<FlagValue>& defaults,
                     const std::vector<FlagValue>& meanings) {
  std::string help;
  for (const std::string& name : names) {
    absl::StrAppend(&help, "  --", name, "=", DefaultOf(name, defaults), "\n      ",
                    HelpOf(name, meanings), "\n");
  }
  return help;
}

}  // namespace stowage
