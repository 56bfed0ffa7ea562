#include "tests/bench/load/redis_faults.h"

#include <chrono>
#include <thread>

namespace stowage {
namespace {

// Several times as long as a server waits for it.
constexpr std::chrono::milliseconds kDead(1500);
constexpr std::chrono::seconds kFrozen(3);

}  // namespace

std::string RedisFaults::flag() const { return "--redis=" + server_.address().host_or_path; }

void RedisFaults::Next() {
  constexpr int kSteps = 5;
  switch (step_++ % kSteps) {
    case 0:
      return server_.Freeze();
    case 1:
      return server_.Thaw();
    case 2:
      return server_.Kill();
    case 3:
      return server_.Start();
    default:
      server_.Ask({"FLUSHALL"});
  }
}

void RedisFaults::Mend() {
  // Frozen, or killed.
  while (step_ % 5 == 1 || step_ % 5 == 3) Next();
}

void RedisFaults::Empty() {
  Mend();
  server_.Ask({"FLUSHALL"});
}

std::string DurableRedisFaults::flag() const {
  return "--decisions_redis=" + server_.address().host_or_path;
}

void DurableRedisFaults::Next() {
  if (kills_next_) {
    server_.Kill();
    std::this_thread::sleep_for(kDead);
    server_.Start();
  } else {
    server_.Freeze();
    std::this_thread::sleep_for(kFrozen);
    server_.Thaw();
  }
  server_.DropOutput();
  kills_next_ = !kills_next_;
}

}  // namespace stowage
