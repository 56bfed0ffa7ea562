// One event as one line: a JSON object with time, level and event first, then the fields in the
// order they were added. Plain ASCII, whatever the values: nothing a caller sends can end a line or
// reach a terminal.
#ifndef STOWAGE_SERVER_OBSERVE_LOG_LINE_H_
#define STOWAGE_SERVER_OBSERVE_LOG_LINE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace stowage {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
inline constexpr int kLogLevelCount = 4;

// "debug", "info", "warning", "error".
const char* ToString(LogLevel level);
std::optional<LogLevel> ParseLogLevel(const std::string& text);

// Not thread-safe.
class LogLine {
 public:
  LogLine(LogLevel level, const char* event);

  LogLine& Add(const char* field, const std::string& value);
  LogLine& Add(const char* field, int64_t value);
  LogLine& Add(const char* field, double value);

  LogLevel level() const { return level_; }
  const char* event() const { return event_; }
  // With its end.
  std::string Text() const { return text_ + "}\n"; }

 private:
  const LogLevel level_;
  const char* const event_;
  std::string text_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_LOG_LINE_H_
