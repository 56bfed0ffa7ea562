// Measures a step instruction by instruction, by the device's clock.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_STEP_RECORDER_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_STEP_RECORDER_H_

#include <memory>
#include <vector>

#include "client/torch/execute/step_report.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/stage_timer.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Of one step, whose memory counts as StepMeter's does; the device outlives it. Instructions lie end to
// end: what the executor does between two of them is not seen. Throws what LibTorch throws. Not
// thread-safe.
class StepRecorder {
 public:
  StepRecorder(ExecutionDevice* device, Bytes input)
      : meter_(device->meter()), base_(meter_->current() - input), timer_(device->MakeTimer()) {}

  // Around an instruction; they wait for nothing.
  void Start() {
    meter_->TakeRecentPeak();
    timer_->Start();
  }
  void Stop() {
    timer_->Stop();
    memory_.push_back({meter_->TakeRecentPeak() - base_, meter_->current() - base_});
  }

  // Whether compute has done all that was measured; waits for nothing.
  bool Passed() { return timer_->Passed(); }

  // Of a step that carried the schedule out. Waits for compute.
  MeasuredStep Finish(const Schedule& schedule, const StepReport& report);

 private:
  MemoryMeter* meter_;
  Bytes base_;
  std::unique_ptr<StageTimer> timer_;
  struct Memory {
    Bytes peak;
    Bytes held;
  };
  std::vector<Memory> memory_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_STEP_RECORDER_H_
