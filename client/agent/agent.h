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
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/connect.h"
#include "client/rpc/plan_client.h"
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
  // That steps run on; null as ChainExecutor::Create has it.
  ExecutionDevice* device = nullptr;
  // Solver and slots, both part of the key. The defaults leave them to the planner. Plans always only
  // recompute: ChainExecutor carries out no transfers.
  KeyOptions plan;
  // Whose requests these are, see CallOptions::job; empty: JobName() (client/rpc/job_name.h).
  std::string job;
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
  // Cached for a larger shape that this agent has planned for before: what its steps take is not reported.
  bool for_larger = false;
  // The server would like a fresh profile: Refresh sends one, when there is time for it.
  bool profile_wanted = false;
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

  // The same with a timed profile in any case, which the server keeps: see profile_wanted.
  absl::StatusOr<AdoptedPlan> Refresh(const at::Tensor& input, const at::Tensor& target,
                                      const Budget& budget);

  // Tells the server what the steps by the adopted plan took, as medians over all of them so far.
  // FAILED_PRECONDITION before the first step, or by a plan for a larger shape; else
  // PlanConnection::ReportExecution.
  absl::StatusOr<ExecutionVerdict> Report();

  // The last profile; absent before the first Profile or Plan.
  const std::optional<stowage::Profile>& profile() const { return profile_; }
  const PlanConnection& connection() const { return *connection_; }

 private:
  class BatchSource;

  absl::Status Measure(const at::Tensor& input, const at::Tensor& target, bool bytes_only);
  absl::Status EnsureBytes(const at::Tensor& input, const at::Tensor& target);
  CallOptions CallWithin() const;
  absl::StatusOr<AdoptedPlan> Adopt(absl::StatusOr<ClientPlan> answer, const at::Tensor& input,
                                    const at::Tensor& target);

  const Chain& chain() const { return std::get<Chain>(profile_->problem); }

  const ChainModel* model_;
  AgentOptions options_;
  std::unique_ptr<PlanConnection> connection_;
  PlanClient client_;
  std::optional<stowage::Profile> profile_;
  std::string signature_;  // of the batch that profile_ was measured with
  std::unique_ptr<ChainExecutor> executor_;
  ExecutionMeasurement measured_;  // of executor_'s plan: key, revision, digest, budget
  bool for_larger_ = false;        // it
  std::vector<Nanos> step_times_;
  std::vector<Bytes> step_peaks_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGENT_H_
