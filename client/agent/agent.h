// What a training job holds: profiles its model, asks for a plan, checks the plan with the referee,
// executes it.
//
//   stowage::Agent agent(&model, options);
//   auto plan = agent.Plan(input, target, *stowage::ParseBudget("60%"));
//   auto step = agent.Step(input, target);   // as often as there are batches of this shape
//
// Not thread-safe; one agent per model and training thread.
#ifndef STOWAGE_CLIENT_AGENT_AGENT_H_
#define STOWAGE_CLIENT_AGENT_AGENT_H_

#include <ATen/core/Tensor.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/connect.h"
#include "client/rpc/plan_connection.h"
#include "client/torch/chain_executor.h"
#include "client/torch/chain_model.h"
#include "client/torch/chain_profiler.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"

namespace stowage {

struct AgentOptions {
  // Of stowaged: "host:port" or "unix:/path". Empty plans in this process.
  GrpcOptions server;
  RetryPolicy retry;
  // For one plan, all of its requests together; the profiling not counted.
  std::chrono::milliseconds plan_timeout{60000};
  ProfileOptions profile;
  // Solver and slots, both part of the key. The defaults leave them to the planner. Plans always only
  // recompute: ChainExecutor carries out no transfers.
  KeyOptions plan;
  // Told once when the server is away and planning falls back to this process; may be empty.
  std::function<void(const std::string&)> said;
};

// A plan as it was adopted (or, if infeasible, answered).
struct AdoptedPlan {
  Plan plan;
  PlanKey key;
  PlanSource source = PlanSource::kLocal;
  // A profile with times was measured for it; a cached plan needs only the bytes.
  bool profiled = false;
  Nanos request_time;  // what the requests took, profiling not counted
};

class Agent {
 public:
  // The model must outlive the agent. Install the TrackingAllocator first
  // (client/torch/tracking_allocator.h).
  Agent(const ChainModel* model, AgentOptions options);
  // The same over a connection of the caller's, say a mock.
  Agent(const ChainModel* model, std::unique_ptr<PlanConnection> connection, AgentOptions options);

  // Measures the model with times, now, whatever is known already. Plan does it by itself when it
  // must. Errors: ProfileChain.
  absl::Status Profile(const at::Tensor& input, const at::Tensor& target);

  // Gets a plan: by key first, and with a timed profile only when nothing fits is cached. Adopts it
  // if it is FOUND and the referee accepts it on this job's own profile; otherwise
  // (PROVEN_INFEASIBLE, NOT_FOUND) there is no plan to step by. Budgets in shares are shares of
  // this job's own profile. Errors: ProfileChain, PlanConnection, ChainExecutor::Create.
  absl::StatusOr<AdoptedPlan> Plan(const at::Tensor& input, const at::Tensor& target,
                                   const Budget& budget);

  // One step by the adopted plan. FAILED_PRECONDITION without one; else ChainExecutor::Step.
  absl::StatusOr<StepReport> Step(const at::Tensor& input, const at::Tensor& target);

  // The last profile; absent before the first Profile or Plan.
  const std::optional<stowage::Profile>& profile() const { return profile_; }
  const PlanConnection& connection() const { return *connection_; }

 private:
  absl::Status Measure(const at::Tensor& input, const at::Tensor& target, bool bytes_only);
  absl::Status EnsureBytes(const at::Tensor& input, const at::Tensor& target);
  absl::StatusOr<Bytes> Resolve(const Budget& budget, const CallOptions& call) const;
  // A cached plan that the referee accepts here; nothing if there is none.
  absl::StatusOr<std::optional<PlanReply>> FromCache(const Budget& budget, const CallOptions& call,
                                                     AdoptedPlan* adopted);
  absl::StatusOr<PlanReply> Compute(const at::Tensor& input, const at::Tensor& target,
                                    const Budget& budget, CallOptions call, AdoptedPlan* adopted);
  absl::Status Adopt(const stowage::Plan& plan, const at::Tensor& input, const at::Tensor& target);

  const Chain& chain() const { return std::get<Chain>(profile_->problem); }

  const ChainModel* model_;
  AgentOptions options_;
  std::unique_ptr<PlanConnection> connection_;
  std::optional<stowage::Profile> profile_;
  std::string signature_;  // of the batch that profile_ was measured with
  std::unique_ptr<ChainExecutor> executor_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGENT_H_
