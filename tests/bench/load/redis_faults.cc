#include "tests/bench/load/redis_faults.h"

namespace stowage {

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

}  // namespace stowage
