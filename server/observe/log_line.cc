#include "server/observe/log_line.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "solvers/base/text_escape.h"

namespace stowage {

const char* ToString(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

std::optional<LogLevel> ParseLogLevel(const std::string& text) {
  for (int i = 0; i < kLogLevelCount; ++i) {
    const LogLevel level = static_cast<LogLevel>(i);
    if (text == ToString(level)) return level;
  }
  return std::nullopt;
}

LogLine::LogLine(LogLevel level, const char* event) : level_(level), event_(event) {
  const std::string now =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  text_ = absl::StrCat("{\"time\":\"", now, "\",\"level\":\"", ToString(level), "\",\"event\":\"",
                       event, "\"");
}

LogLine& LogLine::Add(const char* field, const std::string& value) {
  absl::StrAppend(&text_, ",\"", field, "\":", JsonString(value));
  return *this;
}

LogLine& LogLine::Add(const char* field, int64_t value) {
  absl::StrAppend(&text_, ",\"", field, "\":", value);
  return *this;
}

LogLine& LogLine::Add(const char* field, double value) {
  absl::StrAppend(&text_, ",\"", field, "\":");
  // JSON has no number for these.
  if (std::isfinite(value)) {
    absl::StrAppend(&text_, value);
  } else {
    text_ += "null";
  }
  return *this;
}

}  // namespace stowage
