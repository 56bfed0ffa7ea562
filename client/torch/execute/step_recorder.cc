#include "client/torch/execute/step_recorder.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

MeasuredStep StepRecorder::Finish(const Schedule& schedule, const StepReport& report) {
  MeasuredStep step;
  step.schedule = ScheduleDigest(schedule);
  step.peak = report.peak;
  step.step_time = report.wall_time;
  Nanos end;
  const std::vector<Nanos> times = timer_->Collect();
  for (size_t i = 0; i < times.size(); ++i) {
    const Nanos start = end;
    end += std::max(times[i], Nanos(0));
    // Whoever else trains here may have let go of something.
    const Bytes held = std::max(memory_[i].held, Bytes(0));
    step.instructions.push_back({start, end, std::max(memory_[i].peak, held), held});
  }
  return step;
}

}  // namespace stowage
