#include "server/config/live_config.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/config/config_flags.h"

namespace stowage {
namespace {

using Values = std::map<std::string, std::string>;

Values CurrentValues() {
  Values values;
  for (const std::string& flag : FlagNames()) {
    values[flag] = absl::FindCommandLineFlag(flag)->CurrentValue();
  }
  return values;
}

// Values that were read once are read again without an error.
void SetTo(const std::string& flag, const std::string& value) {
  std::string error;
  absl::FindCommandLineFlag(flag)->ParseFrom(value, &error);
}

void SetTo(const Values& values) {
  for (const auto& [flag, value] : values) SetTo(flag, value);
}

bool IsLive(const std::string& flag) {
  const std::vector<std::string>& live = LiveFlagNames();
  return std::find(live.begin(), live.end(), flag) != live.end();
}

// A name that the file no longer has is as at a start without it.
void SetToDefaults() {
  for (const std::string& flag : FlagNames()) {
    SetTo(flag, absl::FindCommandLineFlag(flag)->DefaultValue());
  }
}

// Whether a server would start, with the flags set as they would be then.
absl::Status CheckStart(const CommandLine& line, const Environment& environment) {
  SetToDefaults();
  const absl::StatusOr<ConfigSources> sources = ConfigSources::Apply(line, environment);
  if (!sources.ok()) return sources.status();
  return ConfigFromFlags(*sources).status();
}

}  // namespace

const std::vector<std::string>& LiveFlagNames() {
  static const auto* const names =
      new std::vector<std::string>{"log_level", "queue_limit", "max_open_calls", "tenant_share"};
  return *names;
}

absl::StatusOr<LiveChange> ReadAgain(const CommandLine& line, const Environment& environment) {
  const Values before = CurrentValues();
  const absl::Status next = CheckStart(line, environment);
  const Values after = CurrentValues();
  SetTo(before);
  if (!next.ok()) return next;
  LiveChange change;
  for (const auto& [flag, value] : after) {
    if (value == before.at(flag)) continue;
    if (IsLive(flag)) {
      SetTo(flag, value);
    } else {
      change.need_restart.push_back(flag);
    }
  }
  change.config = LiveConfigFromFlags();
  return change;
}

std::unique_ptr<FileWatcher> WatchConfig(const CommandLine& line, const ConfigSources& sources,
                                         std::function<void(const LiveConfig&)> use,
                                         ServerMetrics* metrics, Log* log) {
  const std::string path = sources.file();
  if (path.empty()) return nullptr;
  WatchedFile file;
  file.name = path;
  file.read = [path] { return ReadSmallFile(path); };
  file.use = [line, use = std::move(use), log](const std::string&) -> absl::Status {
    const absl::StatusOr<LiveChange> change = ReadAgain(line, ProcessEnvironment);
    if (!change.ok()) return change.status();
    use(change->config);
    if (change->need_restart.empty()) return absl::OkStatus();
    log->Write(LogLevel::kWarning, "restart_needed", [&](LogLine* text) {
      text->Add("flags", absl::StrJoin(change->need_restart, ", "));
    });
    return absl::OkStatus();
  };
  return std::make_unique<FileWatcher>(
      file, sources.file_text(), absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_reload_interval)),
      metrics, log);
}

}  // namespace stowage
