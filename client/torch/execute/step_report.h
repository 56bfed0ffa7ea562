// What one training step did: measured by executor and plain step alike.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_STEP_REPORT_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_STEP_REPORT_H_

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

#include "client/torch/execute/loss_value.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/host_pool.h"
#include "client/torch/offload/later.h"
#include "client/torch/offload/stage_timer.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// A report is there when the device has been given all of the step, and nobody has waited for it. What the device tells
// comes later: of a step on the CPU it is there at once; elsewhere once the device has done the step, as a rule while it
// is at the next one, and of the last step when somebody asks. `ready` says whether it has come, reading it waits for that
// step alone. What nobody reads is dropped with the report. Copies may be read on any thread, while the device lives.
struct StepReport {
  Later<double> loss;
  // By the clock of the device (ExecutionDevice::MakeTimer): what it did for the step, not what it had to do before.
  Later<Nanos> wall_time;
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

// What plain steps are measured with.
struct StepMeters {
  // Null: the installed TrackingAllocator.
  StepMeters(MemoryMeter* meter = nullptr) : memory(meter) {}  // NOLINT: of a step on the CPU
  StepMeters(MemoryMeter* meter, ExecutionDevice* by) : memory(meter), device(by) {}
  // The device's own; null: as of a step on the CPU.
  explicit StepMeters(ExecutionDevice* by)
      : StepMeters(by == nullptr ? nullptr : by->meter(), by) {}

  MemoryMeter* memory = nullptr;
  ExecutionDevice* device = nullptr;  // whose clock it goes by; null: the steady one
};

// Measures from its construction on. `host` may be null.
class StepMeter {
 public:
  StepMeter(MemoryMeter* meter, Bytes input, std::unique_ptr<StageTimer> timer,
            HostPool* host = nullptr)
      : meter_(meter), timer_(std::move(timer)), host_(host), base_(meter->current() - input) {
    meter_->ResetPeak();
    if (host_ != nullptr) {
      host_->ResetPeak();
      host_base_ = host_->held();
    }
    timer_->Start();
  }
  // Of a plain step.
  StepMeter(const StepMeters& meters, MemoryMeter* memory, Bytes input)
      : StepMeter(memory, input,
                  meters.device == nullptr ? MakeSteadyTimer() : meters.device->MakeTimer()) {}

  // Where the device has been given all of the step; waits for nothing.
  void Stop() { timer_->Stop(); }

  // After Stop, once; waits for nothing.
  void Finish(const LossValue& loss, StepReport* report) {
    report->wall_time = Later<Nanos>([timer = timer_] { return timer->Passed(); },
                                     [timer = timer_] { return timer->Collect().front(); });
    // After the mark at the end it is known; the steady clock, for one, may have passed that before the device does.
    report->loss =
        Later<double>([time = report->wall_time, loss] { return time.ready() && loss.Passed(); },
                      [time = report->wall_time, loss] { return time.Get(), loss.Get(); });
    report->peak = meter_->peak() - base_;
    report->peak_blocks = meter_->peak_block_bytes();
    report->peak_reserved = meter_->peak_reserved();
    if (host_ != nullptr) report->host_peak = host_->peak() - host_base_;
  }

 private:
  MemoryMeter* meter_;
  std::shared_ptr<StageTimer> timer_;  // with what is read of it later
  HostPool* host_;
  Bytes base_;
  Bytes host_base_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_STEP_REPORT_H_
