#include "server/store/redis_reported_steps.h"

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// KEYS: steps. ARGV: steps, milliseconds to live.
constexpr char kRaise[] = R"(
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
local before = tonumber(redis.call('GET', KEYS[1]) or '') or 0
local now = math.max(before, tonumber(ARGV[1]))
redis.call('SET', KEYS[1], string.format('%.0f', now), 'PX', ARGV[2])
return before
)";

}  // namespace

std::optional<int64_t> RedisReportedSteps::Raise(const ReportedPlan& plan, int64_t steps) {
  const auto replies = redis_->Run(
      {{"EVAL", kRaise, "1", keys_.Steps(plan.key, plan.budget, plan.revision, plan.job),
        absl::StrCat(steps), absl::StrCat(time_to_live_.count())}});
  if (!replies.ok() || replies->front().kind != RedisReply::Kind::kInteger) return std::nullopt;
  return replies->front().integer;
}

}  // namespace stowage
