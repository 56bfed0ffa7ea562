// What one run of something costs: how a profile is measured.
#ifndef STOWAGE_CLIENT_TORCH_COST_METER_H_
#define STOWAGE_CLIENT_TORCH_COST_METER_H_

#include <chrono>

#include "client/torch/memory_meter.h"
#include "solvers/model/units.h"

namespace stowage {

// Time, memory kept and highest memory of one run.
struct Cost {
  Nanos time;
  Bytes kept;
  Bytes peak;  // above the start

  Bytes overhead() const { return peak - kept; }
};

template <class Run>
Cost Measure(MemoryMeter* meter, const Run& run) {
  using Clock = std::chrono::steady_clock;
  const Bytes before = meter->current();
  meter->ResetPeak();
  const Clock::time_point start = Clock::now();
  run();
  const auto time = Clock::now() - start;
  return {Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()),
          meter->current() - before, meter->peak() - before};
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_COST_METER_H_
