#include "solvers/transfer/outline.h"

#include <cstddef>

namespace stowage {

Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs) {
  Schedule schedule;
  for (const OutlinePart& part : outline) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    for (int l = part.first; l <= runs_to; ++l) {
      schedule.push_back(l == part.first ? ForwardNoSave(l) : ForwardNoSaveFreeInput(l));
    }
    if (!part.saved) continue;
    schedule.push_back(ForwardSave(part.last));
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

double RecomputeTimeOf(const Outline& outline, const SegmentCosts& costs) {
  double time = 0;
  for (const OutlinePart& part : outline) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    if (runs_to < part.first) continue;
    time += static_cast<double>(costs.ForwardTime(part.first, runs_to));
    const SegmentCosts::Options options = costs.OptionsOf(part.first, part.last, part.saved);
    for (const SegmentOption* option = options.begin; option != options.end; ++option) {
      if (option->room == part.room.value()) time += option->excess;
    }
  }
  return time;
}

std::optional<Outline> OutlineOf(const Schedule& schedule, const SegmentCosts& costs) {
  Outline outline;
  const auto add = [&](OutlinePart part) {
    const int runs_to = part.saved ? part.last - 1 : part.last;
    if (runs_to >= part.first) {
      if (!costs.MayRunTwice(part.first, runs_to)) return false;
      const SegmentCosts::Options options = costs.OptionsOf(part.first, part.last, part.saved);
      if (options.begin == options.end) return false;
      part.room = Bytes(options.begin->room);
    }
    outline.push_back(part);
    return true;
  };
  int first = 0;  // of stages that have run and saved nothing; 0: none
  for (size_t k = 0; k < schedule.size() && schedule[k].op != Op::kBackward; ++k) {
    const Instruction& i = schedule[k];
    const int next = outline.empty() ? 1 : outline.back().last + 1;
    const bool runs = i.op == Op::kForwardNoSave || i.op == Op::kForwardNoSaveFreeInput;
    if (i.op == Op::kForwardSave) {
      // The input of a saved stage may be dropped: then it belongs to the stages before it.
      const bool drops = first > 0 && k + 1 < schedule.size() &&
                         schedule[k + 1] == Discard(TensorKind::kActivation, i.stage - 1);
      if (first > 0 && !drops && !add({first, i.stage - 1, false, Bytes(0), false})) return {};
      const int from = drops ? first : i.stage;
      if (from != (outline.empty() ? 1 : outline.back().last + 1)) return {};
      if (!add({from, i.stage, true, Bytes(0), false})) return {};
      first = 0;
    } else if (runs && first > 0 && i.op == Op::kForwardNoSave) {
      if (!add({first, i.stage - 1, false, Bytes(0), false})) return {};
      first = i.stage;
    } else if (runs) {
      if (first == 0 && i.stage != next) return {};
      if (first == 0) first = i.stage;
    } else if (i.op != Op::kDiscard) {
      return {};
    }
  }
  if (first > 0 || outline.empty() || outline.back().last != costs.last()) return {};
  return outline;
}

}  // namespace stowage
