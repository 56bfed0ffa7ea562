#include "client/rpc/local_connection.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "client/rpc/call_stop.h"
#include "client/rpc/local_frontier.h"
#include "proto/codec/grpc_status.h"
#include "solvers/base/version.h"
#include "solvers/batch/fit_batch.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

absl::Status NotLocal(const std::string& what) {
  return WithReason(absl::UnimplementedError(what), kReasonNotImplemented);
}

absl::Status NothingKept() { return absl::NotFoundError("local planning keeps no cache of plans"); }

absl::Status NoDecisions() { return NotLocal("local planning keeps no decisions"); }

// Tells of a solve as it goes on. Shares never fall, whatever the solver says.
class LocalProgress {
 public:
  LocalProgress(const Profile& profile, const KeyOptions& key_options, Bytes budget,
                const ProgressCallback& progress)
      : instance_(InstanceOf(profile, key_options.recompute_only)),
        budget_(budget),
        progress_(progress) {}

  // Has the solve tell this object, which must outlive it.
  void ListenTo(SolveOptions* options) {
    if (!progress_) return;
    options->progress = [this](double share) {
      share_ = std::max(share_, share);
      Tell();
    };
    options->incumbent = [this](const Schedule& schedule) { Take(schedule); };
  }

  void End(const Plan& plan) {
    if (progress_) progress_({1.0, plan.status == PlanStatus::kFound ? &plan : nullptr});
  }

 private:
  void Take(const Schedule& schedule) {
    Plan plan;
    plan.status = PlanStatus::kFound;
    plan.budget = budget_;
    plan.schedule = schedule;
    if (!ValidatePlan(instance_, &plan).ok()) return;
    plan.stage_vertices = StepVertices(instance_.problem());
    best_ = std::move(plan);
    Tell();
  }

  void Tell() const { progress_({share_, best_ ? &*best_ : nullptr}); }

  const Instance instance_;
  const Bytes budget_;
  const ProgressCallback& progress_;
  std::optional<Plan> best_;
  double share_ = 0;
};

absl::StatusOr<BatchReply> FitBatchHere(const BatchQuery& query, const CallStop& stop) {
  const absl::StatusOr<BatchBounds> bounds =
      MakeBatchBounds(query.device_budget, query.reserved, query.max_batch_size);
  if (!bounds.ok()) return bounds.status();
  std::vector<BatchProfile> profiles;
  for (const BatchQuery::Measured& measured : query.profiles) {
    profiles.push_back({measured.batch_size, measured.profile});
  }
  const absl::StatusOr<BatchModel> model = BatchModel::Create(std::move(profiles));
  if (!model.ok()) return model.status();
  const PlanOptions plan_options = stop.OptionsFor(query.options);
  const absl::StatusOr<BatchFit> fit = FitBatch(
      *model, bounds->max_batch,
      [&](const Profile& profile) { return MakePlan(profile, bounds->budget, plan_options); });
  if (!fit.ok()) return fit.status();
  BatchReply reply{fit->largest, fit->fastest, fit->samples_per_second, {}};
  for (const BatchPoint& point : fit->points) {
    reply.points.push_back({point.batch_size, point.makespan, point.peak, point.samples_per_second,
                            point.fits, point.within_profiles});
  }
  return reply;
}

class LocalConnection : public PlanConnection {
 public:
  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>&, const Budget&,
                                    const CallOptions&) override {
    return NothingKept();
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return WatchPlan(profile, budget, key_options, {}, options);
  }

  absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                      const KeyOptions& key_options,
                                      const ProgressCallback& progress,
                                      const CallOptions& options) override {
    const CallStop stop(options);
    PlanOptions plan_options = stop.OptionsFor(key_options);
    const absl::StatusOr<Bytes> bytes = ResolveBudget(profile, budget, plan_options);
    if (!bytes.ok()) return bytes.status();
    LocalProgress told(profile, key_options, *bytes, progress);
    told.ListenTo(&plan_options.solve);
    absl::StatusOr<Plan> plan = MakePlan(profile, *bytes, plan_options);
    if (!plan.ok()) return plan.status();
    told.End(*plan);
    return PlanReply{*std::move(plan), MakePlanKey(profile, key_options), PlanSource::kLocal};
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    absl::StatusOr<LocalFrontier> made =
        MakeLocalFrontier(profile, key_options, max_points, /*progress=*/{}, options);
    if (!made.ok()) return made.status();
    return std::move(made->reply);
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    return FitBatchHere(query, CallStop(options));
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey&, const Budget&,
                                          const CallOptions&) override {
    return NothingKept();
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement&,
                                                   const CallOptions&) override {
    return NotLocal("local planning learns nothing from reports");
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery&, const CallOptions&) override {
    return PlanPage();
  }

  absl::Status ChangePlan(const PlanRevision&, RevisionAction, const ChangeTerms&,
                          const CallOptions&) override {
    return NothingKept();
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey&, const ChangeTerms&, const CallOptions&) override {
    return false;
  }

  absl::StatusOr<ExportedDecisions> ExportDecisions(const std::string&, int32_t,
                                                    const CallOptions&) override {
    return NoDecisions();
  }

  absl::StatusOr<ImportedDecisions> ImportDecisions(const std::vector<std::string>&,
                                                    const CallOptions&) override {
    return NoDecisions();
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions&) override {
    Capabilities capabilities;
    capabilities.server_version = kVersion;
    capabilities.key_encoding_version = kEncodingVersion;
    for (const Solver* solver : AllSolvers()) capabilities.solvers.push_back(solver->info());
    capabilities.max_message = Bytes(std::numeric_limits<int64_t>::max());
    capabilities.max_stages = Chain::kMaxStages;
    capabilities.max_vertices = Graph::kMaxVertices;
    capabilities.implemented_rpcs = {"ComputePlan", "WatchPlan", "GetFrontier", "FitBatch",
                                     "GetCapabilities"};
    return capabilities;
  }

  std::string name() const override { return "local planning"; }
};

}  // namespace

std::unique_ptr<PlanConnection> MakeLocalConnection() {
  return std::make_unique<LocalConnection>();
}

}  // namespace stowage
