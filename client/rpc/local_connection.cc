#include "client/rpc/local_connection.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "proto/codec/grpc_status.h"
#include "solvers/model/field_error.h"
#include "solvers/plan/linked_problem.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

absl::Status NotLocal(const std::string& what) {
  return WithReason(absl::UnimplementedError(what), kReasonNotImplemented);
}

absl::Status NothingKept() { return absl::NotFoundError("local planning keeps no cache of plans"); }

// A stop token that the call's deadline and cancel token end.
class CallStop {
 public:
  // max() is a deadline like any other, one that does not pass.
  explicit CallStop(const CallOptions& options)
      : stop_(options.deadline), watch_(options.cancel.get(), [this] { stop_.RequestStop(); }) {}

  PlanOptions OptionsFor(const KeyOptions& key_options) const {
    PlanOptions options;
    options.solver = key_options.solver;
    options.solve.slots = key_options.slots;
    options.solve.stop = &stop_;
    options.recompute_only = key_options.recompute_only;
    return options;
  }

 private:
  StopToken stop_;
  const CancelToken::Watch watch_;
};

// The first, the last, and those of the others that gain most on the one before; at most `most`.
std::vector<Frontier::Point> Thin(const std::vector<Frontier::Point>& points, size_t most) {
  if (points.size() <= most) return points;
  std::vector<size_t> kept;
  for (size_t i = 1; i + 1 < points.size(); ++i) kept.push_back(i);
  const auto gain = [&points](size_t i) { return points[i - 1].makespan - points[i].makespan; };
  std::stable_sort(kept.begin(), kept.end(),
                   [&gain](size_t a, size_t b) { return gain(a) > gain(b); });
  kept.resize(most < 2 ? 0 : most - 2);
  kept.push_back(points.size() - 1);
  if (most > 1) kept.push_back(0);
  std::sort(kept.begin(), kept.end());
  std::vector<Frontier::Point> thin;
  for (const size_t i : kept) thin.push_back(points[i]);
  return thin;
}

// Tells of a solve as it goes on. Shares never fall, whatever the solver says.
class LocalProgress {
 public:
  LocalProgress(const Profile& profile, const KeyOptions& key_options, Bytes budget,
                const ProgressCallback& progress)
      : linked_(LinkedProblemOf(profile, key_options.recompute_only)),
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
    if (!Referee(linked_, &plan).ok()) return;
    plan.stage_vertices = StepVertices(linked_.problem);
    best_ = std::move(plan);
    Tell();
  }

  void Tell() const { progress_({share_, best_ ? &*best_ : nullptr}); }

  const LinkedProblem linked_;
  const Bytes budget_;
  const ProgressCallback& progress_;
  std::optional<Plan> best_;
  double share_ = 0;
};

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
    if (max_points < 0) return FieldError("max_points", max_points, "must be >= 0");
    const CallStop stop(options);
    const absl::StatusOr<Frontier> frontier = MakeFrontier(profile, stop.OptionsFor(key_options));
    if (!frontier.ok()) return frontier.status();
    FrontierReply reply;
    reply.key = MakePlanKey(profile, key_options);
    reply.solver = frontier->info().solver;
    reply.schedule_class = frontier->info().schedule_class;
    reply.least_budget = frontier->info().least_budget;
    const size_t most =
        max_points == 0 ? frontier->points().size() : static_cast<size_t>(max_points);
    for (const Frontier::Point& point : Thin(frontier->points(), most)) {
      reply.points.push_back({point.peak, point.makespan, point.peak});
    }
    reply.exact = frontier->info().exact && reply.points.size() == frontier->points().size();
    return reply;
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery&, const CallOptions&) override {
    return NotLocal("batches are fitted by a server, not by local planning");
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

  absl::Status PinPlan(const PlanRevision&, RevisionAction, const CallOptions&) override {
    return NothingKept();
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey&, const CallOptions&) override { return false; }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions&) override {
    Capabilities capabilities;
    capabilities.server_version = kSolverVersion;
    capabilities.key_encoding_version = kEncodingVersion;
    capabilities.solvers = SolverInfos();
    capabilities.max_message = Bytes(std::numeric_limits<int64_t>::max());
    capabilities.max_stages = Chain::kMaxStages;
    capabilities.max_vertices = Graph::kMaxVertices;
    capabilities.implemented_rpcs = {"ComputePlan", "WatchPlan", "GetFrontier", "GetCapabilities"};
    return capabilities;
  }

  std::string name() const override { return "local planning"; }
};

}  // namespace

std::unique_ptr<PlanConnection> MakeLocalConnection() {
  return std::make_unique<LocalConnection>();
}

}  // namespace stowage
