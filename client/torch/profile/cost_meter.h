// What one run of something costs: how a profile is measured.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_COST_METER_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_COST_METER_H_

#include <c10/core/Device.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "client/torch/memory/memory_meter.h"
#include "client/torch/memory/thread_memory.h"
#include "client/torch/offload/device_use.h"
#include "client/torch/offload/stage_timer.h"
#include "solvers/model/units.h"

namespace stowage {

// Memory of one run, above that at its start.
struct Cost {
  Bytes kept;
  // In blocks: which temporaries there are is not known, so that their sizes cannot be rounded up one by one.
  Bytes kept_blocks;
  Bytes peak_blocks;

  Bytes overhead() const { return peak_blocks - kept_blocks; }
};

// What is in memory at some moment: of all threads, and of the calling one where memory is counted by threads.
struct HeldMemory {
  Bytes bytes;
  Bytes blocks;
  std::optional<Bytes> own;
};

// Bytes are known after each run, times not before Finish: to ask for them would make the device wait.
//
// No cost is less than what the calling thread allocated, where memory is counted by threads: what another one frees meanwhile
// (of gradients that ranks have summed) takes nothing from it. What another one allocates is counted, since a stage may have
// threads of its own.
//
// Not thread-safe.
class CostMeter {
 public:
  // Of runs on `device`, `granularity` as of ExecutionDevice.
  CostMeter(MemoryMeter* meter, StageTimer* timer, Bytes granularity, c10::Device device)
      : meter_(meter), timer_(timer), granularity_(granularity), device_(device) {}

  // `time` is where Finish puts what `run` took.
  template <class Run>
  Cost Measure(const Run& run, Nanos* time) {
    WaitForBackwards(device_);
    const HeldMemory before = Held();
    meter_->ResetPeak();
    ResetThreadPeak();
    timer_->StartQueued();
    run();
    timer_->Stop();
    times_.push_back(time);
    WaitForBackwards(device_);
    Cost cost{KeptSince(before), meter_->block_bytes() - before.blocks,
              meter_->peak_block_bytes() - before.blocks};
    if (!before.own.has_value()) return cost;
    // A block is as many bytes as it was asked for, there.
    cost.kept_blocks = cost.kept;
    cost.peak_blocks = std::max(cost.peak_blocks, *ThreadPeak(*meter_) - *before.own);
    return cost;
  }

  HeldMemory Held() const {
    return {meter_->current(), meter_->block_bytes(), HeldByThread(*meter_)};
  }
  // Negative where less is held than before.
  Bytes KeptSince(const HeldMemory& before) const {
    const HeldMemory now = Held();
    const Bytes kept = now.bytes - before.bytes;
    return now.own.has_value() ? std::max(kept, *now.own - *before.own) : kept;
  }

  void Finish() {
    const std::vector<Nanos> times = timer_->Collect();
    for (size_t i = 0; i < times_.size(); ++i) *times_[i] = times[i];
    times_.clear();
  }

  // A block that so many bytes are asked for.
  Bytes Block(Bytes bytes) const {
    const int64_t unit = granularity_.value();
    return Bytes((bytes.value() + unit - 1) / unit * unit);
  }

 private:
  MemoryMeter* const meter_;
  StageTimer* const timer_;
  const Bytes granularity_;
  const c10::Device device_;
  std::vector<Nanos*> times_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_COST_METER_H_
