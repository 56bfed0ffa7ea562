#include "server/config/config_sources.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/auth/file_watcher.h"
#include "server/config/config_flags.h"
#include "server/store/redis_address.h"

namespace stowage {
namespace {

bool OfCommandLineAlone(const std::string& flag) {
  return flag == "version" || flag == "check_config" || flag == "export_decisions" ||
         flag == "import_decisions";
}

bool MayBeInFile(const std::string& flag) {
  const std::vector<std::string>& names = FlagNames();
  return std::find(names.begin(), names.end(), flag) != names.end() && flag != "config" &&
         !OfCommandLineAlone(flag);
}

std::string Stripped(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text));
}

std::string WithoutComment(const std::string& line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || absl::ascii_isspace(line[i - 1]))) return line.substr(0, i);
  }
  return line;
}

std::string Shown(const std::string& flag, const std::string& value) {
  return flag == "redis" || flag == "decisions_redis" ? WithoutPassword(value) : value;
}

// So that EffectiveConfig prints what ApplyFile reads.
bool FileCanHold(const std::string& value) {
  return Stripped(WithoutComment(value)) == value && value.find('\n') == std::string::npos;
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string EnvironmentName(const std::string& flag) {
  return absl::StrCat("STOWAGED_", absl::AsciiStrToUpper(flag));
}

absl::Status ConfigSources::Set(const FlagValue& flag, const Place& place) {
  if (!FileCanHold(flag.value)) {
    return absl::InvalidArgumentError(
        absl::StrCat(place.described, "=", Shown(flag.name, flag.value),
                     ": must have no blank at its ends, no line break, and no # at its start or "
                     "after a blank"));
  }
  if (absl::Status status = SetFlag(flag, place.described); !status.ok()) return status;
  places_[flag.name] = place;
  return absl::OkStatus();
}

absl::Status ConfigSources::ApplyFile(const std::string& path) {
  absl::StatusOr<std::string> all = ReadSmallFile(path);
  if (!all.ok()) return all.status();
  file_ = path;
  file_text_ = *std::move(all);
  std::set<std::string> seen;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(file_text_, '\n')) {
    const std::string origin = absl::StrCat(path, ":", ++number);
    const std::string text = Stripped(WithoutComment(std::string(line)));
    if (text.empty()) continue;
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return absl::InvalidArgumentError(absl::StrCat(origin, ": must be NAME = VALUE"));
    }
    const std::string name = Stripped(text.substr(0, equals));
    if (!MayBeInFile(name)) {
      return absl::InvalidArgumentError(absl::StrCat(origin, ": unknown name ", name));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat(origin, ": ", name, " comes twice"));
    }
    absl::Status status =
        Set({name, Stripped(text.substr(equals + 1))}, {absl::StrCat(origin, ": ", name), origin});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<ConfigSources> ConfigSources::Apply(const CommandLine& line,
                                                   const Environment& environment) {
  ConfigSources sources;
  std::string path = environment(EnvironmentName("config")).value_or("");
  for (const FlagValue& flag : line.values) {
    if (flag.name == "config") path = flag.value;
  }
  if (!path.empty()) {
    if (absl::Status status = sources.ApplyFile(path); !status.ok()) return status;
  }
  for (const std::string& flag : FlagNames()) {
    const std::string name = EnvironmentName(flag);
    const std::optional<std::string> value = environment(name);
    if (!value || OfCommandLineAlone(flag)) continue;
    if (absl::Status status = sources.Set({flag, *value}, {name, name}); !status.ok()) {
      return status;
    }
  }
  for (const FlagValue& flag : line.values) {
    absl::Status status = sources.Set(flag, {"--" + flag.name, "command line"});
    if (!status.ok()) return status;
  }
  return sources;
}

std::string ConfigSources::Describe(const std::string& flag) const {
  const auto found = places_.find(flag);
  return found != places_.end() ? found->second.described : "--" + flag;
}

std::string ConfigSources::Origin(const std::string& flag) const {
  const auto found = places_.find(flag);
  return found != places_.end() ? found->second.origin : "default";
}

std::string EffectiveConfig(const ConfigSources& sources) {
  std::string text;
  for (const std::string& flag : FlagNames()) {
    if (!MayBeInFile(flag)) continue;
    const std::string value = absl::FindCommandLineFlag(flag)->CurrentValue();
    absl::StrAppend(&text, flag, " = ", Shown(flag, value), "  # ", sources.Origin(flag), "\n");
  }
  return text;
}

}  // namespace stowage
