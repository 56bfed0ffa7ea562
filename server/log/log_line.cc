#include "server/log/log_line.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace stowage {
namespace {

std::string Quoted(const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte >= 0x7f) {
      absl::StrAppend(&out, "\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace

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
  absl::StrAppend(&text_, ",\"", field, "\":", Quoted(value));
  return *this;
}

LogLine& LogLine::Add(const char* field, int64_t value) {
  absl::StrAppend(&text_, ",\"", field, "\":", value);
  return *this;
}

LogLine& LogLine::Add(const char* field, double value) {
  absl::StrAppend(&text_, ",\"", field, "\":", value);
  return *this;
}

}  // namespace stowage
