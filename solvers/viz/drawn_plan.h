// A plan with all that its pictures are drawn from.
#ifndef STOWAGE_SOLVERS_VIZ_DRAWN_PLAN_H_
#define STOWAGE_SOLVERS_VIZ_DRAWN_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/plan.h"
#include "solvers/viz/step_timeline.h"

namespace stowage {

// What a plan does with each stage of a chain, or vertex of a graph: keep what it makes, recompute it,
// offload it.

// A label per number that instructions have: [0] is the chain's input (of a graph there is none such),
// and so on to the loss or the last vertex. A stage without a name gets its op and number. Not escaped.
std::vector<std::string> StageLabels(const Problem& problem);

// "recompute conv1", "offload saved tensors of conv1, part 2", "wait until saved tensors of conv1 are
// on the host": an event with its stage's label.
std::string EventText(const TimelineEvent& event, const std::string& label);

enum class StageRole : uint8_t { kKeep, kRecompute, kOffload, kRecomputeAndOffload };
// "keep", "recompute", "offload", "recompute and offload".
const char* ToString(StageRole role);

struct StageUse {
  StageRole role = StageRole::kKeep;
  int forwards = 0;
  Nanos forward_time;    // of all of them
  Nanos recompute_time;  // of all but the first
  Nanos backward_time;
  Bytes offloaded;   // to host memory: of what the stage makes
  Bytes prefetched;  // from there
};

// By number, [0] for the chain's input. O(instructions + stages).
std::vector<StageUse> StageUses(const Problem& problem, const StepTimeline& step);

// Immutable by convention, hence safe to share between threads.
struct DrawnPlan {
  std::string label;  // tells it from another one: "60%", "revolve"; any characters
  Plan plan;
  StepTimeline step;
  std::vector<StageUse> stages;  // by number
  std::optional<MeasuredStep> measured;
};

// Of a plan that was found for the problem. INVALID_ARGUMENT: it was not, the evaluator refuses its
// schedule, or the measured step is of another one. Cost of TimelineOf.
absl::StatusOr<DrawnPlan> DrawPlan(const Instance& instance, std::string label, Plan plan,
                                   std::optional<MeasuredStep> measured = std::nullopt);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_DRAWN_PLAN_H_
