// Keeps floods out of the log: of one event at one level, and of one kind of it, so many lines a
// second, the rest counted and told with the next line of these that passes. A token bucket each.
//
// Thread-safe; O(log events) per call.
#ifndef STOWAGE_SERVER_OBSERVE_LOG_LIMITER_H_
#define STOWAGE_SERVER_OBSERVE_LOG_LIMITER_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "server/observe/log_line.h"

namespace stowage {

class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // At most `per_second` > 0 lines in any second, after a burst of as many.
  explicit LogLimiter(int per_second) : per_second_(per_second) {}

  // How many lines were kept back since the last that passed; nothing: keep this one back, too.
  // Event names are constants of the program, and so are the kinds of one: their number is bounded.
  std::optional<int64_t> Admit(LogLevel level, const char* event, int kind, Clock::time_point now);

 private:
  struct Bucket {
    double tokens = 0;
    Clock::time_point filled;
    int64_t kept_back = 0;
  };

  const int per_second_;
  std::mutex mutex_;
  std::map<std::tuple<LogLevel, std::string, int>, Bucket> buckets_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_LOG_LIMITER_H_
