// What one training step did: measured by executor and plain step alike.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_STEP_REPORT_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_STEP_REPORT_H_

#include <array>
#include <chrono>
#include <cstddef>

#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/host_pool.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

struct StepReport {
  double loss = 0;
  Nanos wall_time;
  // Highest memory of the step, the input counted, what was live before it not.
  Bytes peak;
  // Most that the blocks of live tensors took meanwhile, whoever's (MemoryMeter::block_bytes).
  Bytes peak_blocks;
  // Most that the device's allocator held of the device meanwhile, whoever it was for.
  Bytes peak_reserved;
  Bytes offloaded;   // to host memory
  Bytes prefetched;  // from there
  Bytes host_peak;   // most host memory of the step
  int forwards = 0;
  int recomputed_forwards = 0;

  int count(Op op) const { return counts[static_cast<size_t>(op)]; }
  std::array<int, 10> counts{};  // instructions carried out, by Op
};

// Measures from its construction on. `host` may be null.
class StepMeter {
 public:
  StepMeter(MemoryMeter* meter, Bytes input, HostPool* host = nullptr)
      : meter_(meter), host_(host), base_(meter->current() - input) {
    meter_->ResetPeak();
    if (host_ == nullptr) return;
    host_->ResetPeak();
    host_base_ = host_->held();
  }

  void Finish(StepReport* report) const {
    const auto time = Clock::now() - start_;
    report->wall_time = Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    report->peak = meter_->peak() - base_;
    report->peak_blocks = meter_->peak_block_bytes();
    report->peak_reserved = meter_->peak_reserved();
    if (host_ != nullptr) report->host_peak = host_->peak() - host_base_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  MemoryMeter* meter_;
  HostPool* host_;
  Bytes base_;
  Bytes host_base_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_STEP_REPORT_H_
