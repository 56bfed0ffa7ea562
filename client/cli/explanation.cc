#include "client/cli/explanation.h"

#include <utility>
#include <variant>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"

namespace stowage {
namespace {

// What keeping it holds; of a graph there is no stage 0.
Bytes SavedBytes(const Problem& problem, int stage) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    return stage == 0 ? Bytes(0) : graph->bytes(stage - 1) + graph->vertex(stage - 1).extra_saved;
  }
  const Chain& chain = std::get<Chain>(problem);
  return stage == 0 ? chain.activation(0) : chain.stage(stage).saved;
}

std::vector<StageFate> FatesOf(const Problem& problem, const StepTimeline& timeline) {
  const std::vector<StageUse> uses = StageUses(problem, timeline);
  const std::vector<std::string> labels = StageLabels(problem);
  std::vector<StageFate> fates;
  for (size_t stage = 0; stage < uses.size(); ++stage) {
    const int number = static_cast<int>(stage);
    fates.push_back({number, labels[stage], uses[stage], SavedBytes(problem, number), Nanos(0)});
  }
  for (const TimelineEvent& event : timeline.events) {
    if (event.work != StepWork::kWait) continue;
    fates[static_cast<size_t>(event.instruction.stage)].waited += event.left - event.reached;
  }
  const bool input_moves = fates.front().use.offloaded > Bytes(0);
  if (!input_moves) fates.erase(fates.begin());
  return fates;
}

PeakMoment PeakOf(const Problem& problem, const StepTimeline& timeline) {
  PeakMoment peak;
  peak.instruction = timeline.simulation.peak_instruction;
  const TimelineEvent& event = timeline.events[peak.instruction];
  const bool running = event.running.total() >= event.held.total();
  const std::vector<std::string> labels = StageLabels(problem);
  peak.text = EventText(event, labels[static_cast<size_t>(event.instruction.stage)]);
  peak.at = running ? event.reached : event.left;
  peak.memory = running ? event.running : event.held;
  return peak;
}

}  // namespace

absl::StatusOr<Explanation> Explain(const Instance& instance, const PlanReply& reply) {
  Explanation explanation;
  explanation.plan = reply.plan;
  explanation.source = reply.source;
  if (reply.plan.status != PlanStatus::kFound) return explanation;
  const absl::StatusOr<StepTimeline> timeline = TimelineOf(instance, reply.plan.schedule);
  if (!timeline.ok()) return timeline.status();
  explanation.stages = FatesOf(instance.problem(), *timeline);
  explanation.peak = PeakOf(instance.problem(), *timeline);
  return explanation;
}

void FindNeighbours(const std::vector<FrontierReply::Point>& points, Explanation* explanation) {
  const Plan& plan = explanation->plan;
  const bool found = plan.status == PlanStatus::kFound;
  for (const FrontierReply::Point& point : points) {
    const bool less =
        found && point.peak < plan.prediction.peak && point.makespan > plan.prediction.makespan;
    const bool more =
        point.budget > plan.budget && (!found || point.makespan < plan.prediction.makespan);
    if (less) explanation->less = point;
    if (more && !explanation->more) explanation->more = point;
  }
}

}  // namespace stowage
