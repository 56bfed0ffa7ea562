// What one run of something costs: how a profile is measured.
#ifndef STOWAGE_CLIENT_TORCH_COST_METER_H_
#define STOWAGE_CLIENT_TORCH_COST_METER_H_

#include <cstddef>
#include <vector>

#include "client/torch/memory_meter.h"
#include "client/torch/stage_timer.h"
#include "solvers/model/units.h"

namespace stowage {

// Memory kept and highest memory of one run.
struct Cost {
  Bytes kept;
  Bytes peak;  // above the start

  Bytes overhead() const { return peak - kept; }
};

// Bytes are known after each run, times not before Finish: to ask for them would make the device wait.
// Not thread-safe.
class CostMeter {
 public:
  CostMeter(MemoryMeter* meter, StageTimer* timer) : meter_(meter), timer_(timer) {}

  // `time` is where Finish puts what `run` took.
  template <class Run>
  Cost Measure(const Run& run, Nanos* time) {
    const Bytes before = meter_->current();
    meter_->ResetPeak();
    timer_->Start();
    run();
    timer_->Stop();
    times_.push_back(time);
    return {meter_->current() - before, meter_->peak() - before};
  }

  void Finish() {
    const std::vector<Nanos> times = timer_->Collect();
    for (size_t i = 0; i < times_.size(); ++i) *times_[i] = times[i];
    times_.clear();
  }

  Bytes live() const { return meter_->current(); }

 private:
  MemoryMeter* const meter_;
  StageTimer* const timer_;
  std::vector<Nanos*> times_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_COST_METER_H_
