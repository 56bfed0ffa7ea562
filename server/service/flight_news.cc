#include "server/service/flight_news.h"

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

bool FlightNews::Progressed(double share) {
  std::lock_guard<std::mutex> lock(mutex_);
  latest_.progress = std::max(latest_.progress, std::min(share, 1.0));
  return TimeToTell(Clock::now());
}

bool FlightNews::WantsPlan() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !latest_.best || Clock::now() - found_ >= kInterval;
}

bool FlightNews::Found(std::shared_ptr<const Plan> plan) {
  std::lock_guard<std::mutex> lock(mutex_);
  const bool first = !latest_.best;
  found_ = Clock::now();
  if (!first && latest_.best->prediction.makespan <= plan->prediction.makespan) return false;
  latest_.best = std::move(plan);
  if (first) told_ = found_;
  return first || TimeToTell(found_);
}

FlightNews::Latest FlightNews::latest() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return latest_;
}

bool FlightNews::TimeToTell(Clock::time_point now) {
  if (now - told_ < kInterval) return false;
  told_ = now;
  return true;
}

}  // namespace stowage
