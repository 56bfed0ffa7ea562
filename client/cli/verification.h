// Proof that training by a plan is training: the same steps, plain and by the plan, held against each
// other bit for bit, and what was executed against what was planned.
#ifndef STOWAGE_CLIENT_CLI_VERIFICATION_H_
#define STOWAGE_CLIENT_CLI_VERIFICATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/agent.h"
#include "client/agent/batch.h"
#include "client/agent/step_arenas.h"
#include "client/agent/trained_model.h"
#include "client/cli/training_comparison.h"
#include "solvers/model/budget.h"
#include "solvers/model/units.h"
#include "solvers/schedule/plan.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// One budget.
struct Verified {
  Budget budget;
  AdoptedPlan adopted;
  // Nothing below has a meaning unless a plan was found.
  Trajectory run;
  Equality equal;
  StepMemory memory;  // of the last step
  int planned_transfers = 0;
  int executed_transfers = 0;       // of the first step
  std::vector<std::string> faults;  // what is not as it should be, one sentence each
  std::vector<AgentEvent> events;   // of the agent meanwhile, where somebody took them down
  // That the step fails with 64 bytes less than its peak and mends; nothing where it was not tried.
  std::optional<bool> limit_held;

  bool found() const { return adopted.plan.status == PlanStatus::kFound; }
};

// What is not as the plan says: peak, recomputes, every kind of instruction, in any step.
std::vector<std::string> Faults(const Plan& plan, const Trajectory& run, const Equality& equal);
// The same of a step that was served from a region: what is reserved for it is within the budget, too.
std::vector<std::string> Faults(const StepMemory& memory);

// How many instructions copy a tensor to the host or back.
int Transfers(const Schedule& schedule);
int Transfers(const StepReport& report);

// Not thread-safe.
class Verification {
 public:
  static constexpr int kPlainRuns = 4;

  // `plain` and the model of `agent` are the same; they, the batch and what plain steps are measured with
  // outlive this. Steps of at least 1.
  Verification(Agent* agent, const TrainedModel* plain, const Batch* batch, uint64_t seed,
               int steps, const StepMeters& meters = {});

  // Trains plain and profiles, unless a profile is known. On a device other than the CPU it trains plain
  // kPlainRuns times, in LibTorch's deterministic mode (BeDeterministic): where those runs are not equal bit for bit, no two
  // are, and planned ones are held to their spread. Errors: those of the steps, KnowOrProfile.
  absl::Status Prepare(std::optional<Profile> known = std::nullopt);
  const Trajectory& plain() const { return plain_runs_.front(); }
  // Nothing where plain runs are equal.
  const std::optional<Distance>& plain_spread() const { return plain_spread_; }

  // Errors: Agent::Plan, Agent::Step.
  absl::StatusOr<Verified> Verify(const Budget& budget);

  // TrainingComparison::CheckLimit of the budget verified last, which had a plan: a fault where it does
  // not hold. Nothing of a step that was served from a region, all of which is reserved already: no limit
  // keeps a step from it.
  void CheckLimit(Verified* verified);

 private:
  Agent* const agent_;
  const Batch* const batch_;
  const int steps_;
  const StepFunction planned_;
  TrainingComparison training_;
  std::vector<Trajectory> plain_runs_;
  std::optional<Distance> plain_spread_;
};

// All of it: what was trained, plain and within each budget.
struct VerificationReport {
  std::string model;
  bool graph = false;
  int nodes = 0;  // stages, the loss counted, or vertices
  int64_t batch = 0;
  std::vector<std::string> inputs;      // "4x3x224x224 float32"
  std::string loss, device;             // "cross_entropy", "cpu"
  int64_t image_size = 0, classes = 0;  // of reference networks of images
  int64_t length = 0;                   // of decoders
  uint64_t seed = 0;
  int threads = 0;   // of LibTorch
  int steps = 0;     // each time
  std::string link;  // simulated, as --link has it; empty: none
  bool arena = false;
  std::string plans_from;  // PlanConnection::name

  Trajectory plain;
  std::optional<Distance> plain_spread;  // of plain runs on a device, unless they are equal
  Nanos plain_prediction;                // of a step without a budget, by the profile
  std::vector<AgentEvent> events;        // before the first budget
  std::vector<Verified> budgets;
  absl::Status ended;  // what kept it from the budgets that are missing; OK if none is

  const char* form() const { return graph ? "graph" : "chain"; }
  bool equal() const;  // no budget has a fault
  bool all_found() const;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_VERIFICATION_H_
