// Why a plan costs what it costs: what happens to each stage, what takes the time, where the peak is.
#ifndef STOWAGE_CLIENT_CLI_EXPLANATION_H_
#define STOWAGE_CLIENT_CLI_EXPLANATION_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/listing.h"
#include "client/rpc/plan_values.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/viz/drawn_plan.h"
#include "solvers/viz/step_timeline.h"

namespace stowage {

// One stage of a chain, the loss last, or one vertex of a graph. The input of a chain, stage 0, is among them
// where it is offloaded.
struct StageFate {
  int stage = 0;  // as instructions call it
  std::string label;
  StageUse use;
  Bytes saved;   // what is held from its forward to its backward where it is kept
  Nanos waited;  // for its copies

  // What of the step it costs beyond its forward and backward.
  Nanos cost() const { return use.recompute_time + waited; }
};

struct PeakMoment {
  size_t instruction = 0;  // from 0
  std::string text;        // "backward layer3.0"
  Nanos at;                // since the start of the step
  MemoryByUse memory;      // adds up to the peak
};

struct Explanation {
  Plan plan;
  PlanSource source = PlanSource::kLocal;
  // Nothing below has a meaning unless the plan was found.
  std::vector<StageFate> stages;
  PeakMoment peak;
  // The nearest that the frontier has, in budget and time: with less memory, and with more and faster.
  std::optional<FrontierReply::Point> less, more;
};

// Of a validated plan. Errors: TimelineOf.
absl::StatusOr<Explanation> Explain(const Instance& instance, const PlanReply& reply);

// The neighbours of the explanation's plan among the points; of a budget that nothing fits, only more.
void FindNeighbours(const std::vector<FrontierReply::Point>& points, Explanation* explanation);

// One row per stage.
Listing StagesOf(const Explanation& explanation);
std::string ToText(const Explanation& explanation);
// One object; the plan in it is the contract's JSON mapping.
std::string ToJson(const Explanation& explanation);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_EXPLANATION_H_
