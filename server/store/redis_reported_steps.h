// Reported steps in the Redis that servers share: a number for each plan and job, for two weeks after its
// last report.
#ifndef STOWAGE_SERVER_STORE_REDIS_REPORTED_STEPS_H_
#define STOWAGE_SERVER_STORE_REDIS_REPORTED_STEPS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/store/redis_client.h"
#include "server/store/redis_keys.h"
#include "server/store/reported_steps.h"

namespace stowage {

// A call is one round trip.
class RedisReportedSteps final : public ReportedSteps {
 public:
  RedisReportedSteps(const RedisKeys& keys, std::shared_ptr<RedisClient> redis,
                     std::chrono::milliseconds time_to_live = std::chrono::hours(24 * 14))
      : keys_(keys), redis_(std::move(redis)), time_to_live_(time_to_live) {}

  std::optional<int64_t> Raise(const ReportedPlan& plan, int64_t steps) override;

 private:
  const RedisKeys keys_;
  const std::shared_ptr<RedisClient> redis_;
  const std::chrono::milliseconds time_to_live_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_REPORTED_STEPS_H_
