// What one training step did: measured by executor and plain step alike.
#ifndef STOWAGE_CLIENT_TORCH_STEP_REPORT_H_
#define STOWAGE_CLIENT_TORCH_STEP_REPORT_H_

#include <array>
#include <chrono>
#include <cstddef>

#include "client/torch/memory_meter.h"
#include "solvers/model/units.h"
#include "solvers/plan/schedule.h"

namespace stowage {

struct StepReport {
  double loss = 0;
  Nanos wall_time;
  // Highest memory of the step, the input counted, what was live before it not.
  Bytes peak;
  int forwards = 0;
  int recomputed_forwards = 0;

  int count(Op op) const { return counts[static_cast<size_t>(op)]; }
  std::array<int, 10> counts{};  // instructions carried out, by Op
};

// Measures from its construction on.
class StepMeter {
 public:
  StepMeter(MemoryMeter* meter, Bytes input)
      : meter_(meter), base_(meter->current() - input), start_(Clock::now()) {
    meter_->ResetPeak();
  }

  void Finish(StepReport* report) const {
    const auto time = Clock::now() - start_;
    report->wall_time = Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    report->peak = meter_->peak() - base_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  MemoryMeter* meter_;
  Bytes base_;
  Clock::time_point start_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_STEP_REPORT_H_
