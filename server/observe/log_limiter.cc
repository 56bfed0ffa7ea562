#include "server/observe/log_limiter.h"

#include <algorithm>
#include <utility>

namespace stowage {

std::optional<int64_t> LogLimiter::Admit(LogLevel level, const char* event, int kind,
                                         Clock::time_point now) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [found, is_new] = buckets_.try_emplace({level, event, kind});
  Bucket& bucket = found->second;
  const std::chrono::duration<double> since = now - bucket.filled;
  bucket.tokens = is_new
                      ? per_second_
                      : std::min<double>(per_second_, bucket.tokens + since.count() * per_second_);
  bucket.filled = now;
  if (bucket.tokens < 1) {
    ++bucket.kept_back;
    return std::nullopt;
  }
  bucket.tokens -= 1;
  return std::exchange(bucket.kept_back, 0);
}

}  // namespace stowage
