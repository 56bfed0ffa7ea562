#include "client/python/core/explanation_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "solvers/schedule/text.h"
#include "solvers/viz/drawn_plan.h"
#include "solvers/viz/step_timeline.h"

namespace stowage {
namespace {

std::string PeakLine(const StepTimeline& step, const std::vector<std::string>& labels) {
  const TimelineEvent& event = step.events[step.simulation.peak_instruction];
  const bool running = event.running.total() >= event.held.total();
  const MemoryByUse& memory = running ? event.running : event.held;
  std::vector<std::string> parts;
  for (size_t use = 0; use < kMemoryUses; ++use) {
    if (memory.bytes[use] == Bytes(0)) continue;
    parts.push_back(
        absl::StrCat(ToString(memory.bytes[use]), " ", ToString(static_cast<MemoryUse>(use))));
  }
  const std::string& label = labels[static_cast<size_t>(event.instruction.stage)];
  return absl::StrFormat("  %-14s %s: %s\n", "peak at", EventText(event, label),
                         absl::StrJoin(parts, ", "));
}

std::string StageLine(const StageUse& use, const std::string& label, size_t width) {
  std::string line =
      absl::StrFormat("  %-*s  %-21s", static_cast<int>(width), label, ToString(use.role));
  if (use.recompute_time > Nanos(0) || use.forwards > 1) {
    absl::StrAppend(&line, " ", use.forwards - 1,
                    use.forwards == 2 ? " recompute, " : " recomputes, ",
                    ToString(use.recompute_time));
  }
  if (use.offloaded > Bytes(0))
    absl::StrAppend(&line, " ", ToString(use.offloaded), " to the host");
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

absl::StatusOr<std::string> ExplanationText(const Instance& instance, const Plan& plan) {
  std::string text = PlanText(plan);
  if (plan.status != PlanStatus::kFound) return text;
  const absl::StatusOr<StepTimeline> step = TimelineOf(instance, plan.schedule);
  if (!step.ok()) return step.status();
  const std::vector<std::string> labels = StageLabels(instance.problem());
  const std::vector<StageUse> uses = StageUses(instance.problem(), *step);
  text += PeakLine(*step, labels);
  size_t width = 0;
  for (const std::string& label : labels) width = std::max(width, label.size());
  // [0] is a chain's input: of account where it leaves the device.
  for (size_t stage = 0; stage < uses.size(); ++stage) {
    if (stage == 0 && uses[0].offloaded == Bytes(0)) continue;
    text += StageLine(uses[stage], labels[stage], width);
  }
  return text;
}

}  // namespace stowage
