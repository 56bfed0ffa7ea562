// Plans for pictures: asked for as any command asks, and drawn.
#ifndef STOWAGE_CLIENT_CLI_DRAWN_ANSWER_H_
#define STOWAGE_CLIENT_CLI_DRAWN_ANSWER_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "client/cli/question.h"
#include "client/rpc/plan_connection.h"
#include "solvers/model/budget.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/viz/drawn_plan.h"

ABSL_DECLARE_FLAG(std::string, measured);

namespace stowage {

// The flags of a command that draws what it plans, after its own `flags`: those of one that plans, but of
// the form of what it prints.
std::vector<std::string> WithPictureFlags(std::vector<std::string> flags);

// Of --measured; nothing if the flag is empty. INVALID_ARGUMENT: it cannot be read, or is no measured step.
absl::StatusOr<std::optional<MeasuredStep>> MeasuredFromFlag();

// A plan as asked for; drawn if it was found.
struct DrawnAnswer {
  Plan plan;
  std::optional<DrawnPlan> drawn;
};

// Errors: AskForPlan, DrawPlan.
absl::StatusOr<DrawnAnswer> AskAndDraw(PlanConnection* connection, const Question& question,
                                       const Budget& budget,
                                       std::optional<MeasuredStep> measured = std::nullopt);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_DRAWN_ANSWER_H_
