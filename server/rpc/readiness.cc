#include "server/rpc/readiness.h"

#include <utility>

namespace stowage {

bool ReadinessRule::Next(bool full, Clock::time_point now) {
  if (full != was_full_) {
    was_full_ = full;
    since_ = now;
  }
  if (ready_ == full && now - since_ >= kPatience) ready_ = !full;
  return ready_;
}

ReadinessWatch::ReadinessWatch(std::function<bool()> full, std::function<void(bool ready)> set)
    : full_(std::move(full)), set_(std::move(set)), thread_([this] { Watch(); }) {}

ReadinessWatch::~ReadinessWatch() { Stop(); }

void ReadinessWatch::Stop() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ReadinessWatch::Watch() {
  ReadinessRule rule;
  bool said = true;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::milliseconds(100), [this] { return stopped_; })) {
    const bool ready = rule.Next(full_(), ReadinessRule::Clock::now());
    if (ready != said) set_(ready);
    said = ready;
  }
}

}  // namespace stowage
