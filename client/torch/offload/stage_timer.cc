#include "client/torch/offload/stage_timer.h"

#include <chrono>
#include <utility>

namespace stowage {
namespace {

class SteadyTimer final : public StageTimer {
 public:
  void Start() override { start_ = Clock::now(); }
  void Stop() override {
    const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_);
    times_.emplace_back(time.count());
  }
  bool Passed() override { return true; }
  std::vector<Nanos> Collect() override { return std::exchange(times_, {}); }

 private:
  using Clock = std::chrono::steady_clock;

  Clock::time_point start_;
  std::vector<Nanos> times_;
};

}  // namespace

std::unique_ptr<StageTimer> MakeSteadyTimer() { return std::make_unique<SteadyTimer>(); }

}  // namespace stowage
