#include "client/rpc/local_connection.h"

#include <limits>
#include <utility>

#include "solvers/planner.h"

namespace stowage {
namespace {

class LocalConnection : public PlanConnection {
 public:
  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>&, const Budget&,
                                    const CallOptions&) override {
    return absl::NotFoundError("local planning keeps no cache of plans");
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    // max() is a deadline like any other, one that does not pass.
    const StopToken stop(options.deadline);
    PlanOptions plan_options;
    plan_options.solver = key_options.solver;
    plan_options.solve.slots = key_options.slots;
    plan_options.solve.stop = &stop;
    plan_options.recompute_only = key_options.recompute_only;
    absl::StatusOr<Plan> plan = MakePlan(profile, budget, plan_options);
    if (!plan.ok()) return plan.status();
    return PlanReply{*std::move(plan), MakePlanKey(profile, key_options), PlanSource::kLocal};
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions&) override {
    Capabilities capabilities;
    capabilities.server_version = kSolverVersion;
    capabilities.key_encoding_version = kEncodingVersion;
    capabilities.solvers = SolverInfos();
    capabilities.max_message = Bytes(std::numeric_limits<int64_t>::max());
    capabilities.max_stages = Chain::kMaxStages;
    capabilities.max_vertices = Graph::kMaxVertices;
    capabilities.implemented_rpcs = {"ComputePlan", "GetCapabilities"};
    return capabilities;
  }

  std::string name() const override { return "local planning"; }
};

}  // namespace

std::unique_ptr<PlanConnection> MakeLocalConnection() {
  return std::make_unique<LocalConnection>();
}

}  // namespace stowage
