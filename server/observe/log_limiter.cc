#include "server/observe/log_limiter.h"

#include <algorithm>
#include <mutex>

namespace stowage {

LogLimiter::Bucket* LogLimiter::BucketOf(LogLevel level, std::string_view event, int kind) {
  {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto found = buckets_.find(std::make_tuple(level, event, kind));
    if (found != buckets_.end()) return &found->second;
  }
  std::unique_lock<std::shared_mutex> lock(mutex_);
  return &buckets_[{level, std::string(event), kind}];
}

std::optional<int64_t> LogLimiter::Admit(LogLevel level, const char* event, int kind,
                                         Clock::time_point now) {
  Bucket* const bucket = BucketOf(level, event, kind);
  const Clock::rep time = now.time_since_epoch().count();
  Clock::rep full_at = bucket->full_at;
  Clock::rep with_one_less = 0;
  do {
    with_one_less = std::max(full_at, time) + token_;
    if (with_one_less - time > bucket_) {
      ++bucket->kept_back;
      return std::nullopt;
    }
  } while (!bucket->full_at.compare_exchange_weak(full_at, with_one_less));
  return bucket->kept_back.exchange(0);
}

}  // namespace stowage
