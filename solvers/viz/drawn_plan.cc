#include "solvers/viz/drawn_plan.h"

#include <cstddef>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {

absl::StatusOr<DrawnPlan> DrawPlan(const Instance& instance, std::string label, Plan plan,
                                   std::optional<MeasuredStep> measured) {
  if (plan.status != PlanStatus::kFound) {
    return FieldError("plan.status", ToString(plan.status), "must be found: there is no step");
  }
  if (measured) {
    const absl::Status status = CheckMeasuredStep(*measured, plan.schedule);
    if (!status.ok()) return status;
  }
  absl::StatusOr<StepTimeline> step = TimelineOf(instance, plan.schedule);
  if (!step.ok()) return step.status();
  std::vector<StageUse> stages = StageUses(instance.problem(), *step);
  return DrawnPlan{std::move(label), std::move(plan), *std::move(step), std::move(stages),
                   std::move(measured)};
}

namespace {

std::string Label(const std::string& name, const std::string& op_kind, const char* kind,
                  int number) {
  if (!name.empty()) return name;
  return absl::StrCat(op_kind.empty() ? kind : op_kind, " ", number);
}

std::string Moved(const Instruction& i, const std::string& label) {
  std::string text = i.tensor == TensorKind::kSaved
                         ? absl::StrCat("saved tensors of ", label)
                         : absl::StrCat(i.stage == 0 ? "" : "output of ", label);
  if (i.part != 0) absl::StrAppend(&text, ", part ", i.part);
  return text;
}

}  // namespace

std::vector<std::string> StageLabels(const Problem& problem) {
  std::vector<std::string> labels = {"input"};
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    for (int p = 0; p < graph->size(); ++p) {
      const Vertex& v = graph->vertex(p);
      labels.push_back(Label(v.name, v.op_kind, "vertex", p + 1));
    }
    return labels;
  }
  const Chain& chain = std::get<Chain>(problem);
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& stage = chain.stage(l);
    const bool loss = l > chain.length();
    labels.push_back(loss && stage.name.empty() ? "loss"
                                                : Label(stage.name, stage.op_kind, "stage", l));
  }
  return labels;
}

std::string EventText(const TimelineEvent& event, const std::string& label) {
  const Instruction& i = event.instruction;
  switch (i.op) {
    case Op::kForwardSave:
      return absl::StrCat(ToString(event.work), " ", label, ", saving");
    case Op::kForwardNoSave:
    case Op::kForwardNoSaveFreeInput:
    case Op::kBackward:
      return absl::StrCat(ToString(event.work), " ", label);
    case Op::kDiscard:
      return absl::StrCat("drop ", Moved(i, label));
    case Op::kDropSavedKeepOutput:
      return absl::StrCat("keep the output alone of ", label);
    case Op::kOffloadStart:
    case Op::kPrefetchStart:
      return absl::StrCat(ToString(event.work), " ", Moved(i, label));
    case Op::kOffloadWait:
      return absl::StrCat("wait for the offload: ", Moved(i, label));
    case Op::kPrefetchWait:
      return absl::StrCat("wait for the prefetch: ", Moved(i, label));
  }
  return label;
}

const char* ToString(StageRole role) {
  static constexpr const char* kNames[] = {"keep", "recompute", "offload", "recompute and offload"};
  return kNames[static_cast<size_t>(role)];
}

std::vector<StageUse> StageUses(const Problem& problem, const StepTimeline& step) {
  std::vector<StageUse> uses(StageLabels(problem).size());
  for (const TimelineEvent& event : step.events) {
    StageUse& use = uses[static_cast<size_t>(event.instruction.stage)];
    const Nanos time = event.end - event.start;
    switch (event.work) {
      case StepWork::kRecompute:
        use.recompute_time += time;
        [[fallthrough]];
      case StepWork::kForward:
        use.forward_time += time;
        ++use.forwards;
        break;
      case StepWork::kBackward:
        use.backward_time += time;
        break;
      case StepWork::kOffload:
        use.offloaded += MovedBytes(problem, event.instruction);
        break;
      case StepWork::kPrefetch:
        use.prefetched += MovedBytes(problem, event.instruction);
        break;
      case StepWork::kWait:
      case StepWork::kRelease:
        break;
    }
  }
  for (StageUse& use : uses) {
    const bool recomputes = use.forwards > 1;
    const bool offloads = use.offloaded > Bytes(0);
    use.role = recomputes ? (offloads ? StageRole::kRecomputeAndOffload : StageRole::kRecompute)
                          : (offloads ? StageRole::kOffload : StageRole::kKeep);
  }
  return uses;
}

}  // namespace stowage
