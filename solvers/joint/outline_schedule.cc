#include "solvers/joint/outline_schedule.h"

namespace stowage {

Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs) {
  Schedule schedule;
  for (const OutlinePart& part : outline) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    for (int l = part.first; l <= runs_to; ++l) {
      schedule.push_back(l == part.first ? ForwardKeepInput(l) : ForwardKeepNothing(l));
    }
    if (!part.saved) continue;
    schedule.push_back(ForwardKeepAll(part.last));
    if (part.first < part.last) {
      schedule.push_back(Discard(TensorKind::kActivation, part.last - 1));
    }
  }
  for (auto part = outline.rbegin(); part != outline.rend(); ++part) {
    if (part->saved && part->first == part->last) {
      schedule.push_back(Backward(part->last));
      continue;
    }
    const Schedule segment =
        costs.SegmentBackward(part->first, part->last, part->saved, part->room);
    schedule.insert(schedule.end(), segment.begin(), segment.end());
  }
  return schedule;
}

}  // namespace stowage
