// Keeps floods out of the log: of one event at one level, and of one kind of it, so many lines a
// second, the rest counted and told with the next line of these that passes. A token bucket each, in one
// atomic: each call writes a line, and none is to wait for another one's. TokenBucket (server/runtime) is for one thread.
//
// Thread-safe: calls for events that were there before wait for none of each other. O(log events) per call.
#ifndef STOWAGE_SERVER_OBSERVE_LOG_LIMITER_H_
#define STOWAGE_SERVER_OBSERVE_LOG_LIMITER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "server/observe/log_line.h"

namespace stowage {

class LogLimiter {
 public:
  using Clock = std::chrono::steady_clock;

  // At most `per_second` > 0 lines in any second, after a burst of as many.
  explicit LogLimiter(int per_second)
      : token_(Clock::duration(std::chrono::seconds(1)).count() / per_second),
        bucket_(token_ * per_second) {}

  // How many lines were kept back since the last that passed; nothing: keep this one back, too.
  // Event names are constants of the program, and so are the kinds of one: their number is bounded.
  std::optional<int64_t> Admit(LogLevel level, const char* event, int kind, Clock::time_point now);

 private:
  // A bucket of tokens, as the time at which it is full again: it is empty where that is a bucket's time ahead.
  struct Bucket {
    std::atomic<Clock::rep> full_at{std::numeric_limits<Clock::rep>::min()};
    std::atomic<int64_t> kept_back{0};
  };

  Bucket* BucketOf(LogLevel level, std::string_view event, int kind);

  const Clock::rep token_;  // the time that a token takes
  const Clock::rep bucket_;
  std::shared_mutex mutex_;
  std::map<std::tuple<LogLevel, std::string, int>, Bucket, std::less<>> buckets_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_LOG_LIMITER_H_
