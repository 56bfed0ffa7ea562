#include "client/rpc/local_frontier.h"

#include <chrono>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/rpc/call_stop.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

FrontierReply ReplyOf(const Frontier& frontier, size_t most) {
  FrontierReply reply;
  reply.solver = frontier.info().solver;
  reply.schedule_class = frontier.info().schedule_class;
  reply.least_budget = frontier.info().least_budget;
  for (const size_t i : ChooseCompact(frontier.points(), most)) {
    const Frontier::Point& point = frontier.points()[i];
    reply.points.push_back({point.peak, point.makespan, point.peak});
  }
  reply.exact = frontier.info().exact && reply.points.size() == frontier.points().size();
  reply.search_complete = frontier.info().search_complete;
  return reply;
}

absl::StatusOr<Bytes> BytesOf(const Budget& budget, const Frontier& frontier,
                              const Profile& profile) {
  if (std::holds_alternative<LeastBudget>(budget) && !frontier.points().empty()) {
    return frontier.points().front().peak;
  }
  return ResolveBudget(profile, budget, PlanOptions());
}

}  // namespace

absl::StatusOr<LocalFrontier> MakeLocalFrontier(const Profile& profile,
                                                const KeyOptions& key_options, int max_points,
                                                const std::function<void(double)>& progress,
                                                const CallOptions& options) {
  if (max_points < 0 || max_points > static_cast<int>(kMostPoints)) {
    return FieldError("max_points", max_points, absl::StrCat("must be in [0, ", kMostPoints, "]"));
  }
  const CallStop stop(options);
  PlanOptions plan_options = stop.OptionsFor(key_options);
  plan_options.solve.progress = progress;
  const auto start = CallOptions::Clock::now();
  absl::StatusOr<Frontier> frontier = MakeFrontier(profile, plan_options);
  if (!frontier.ok()) return frontier.status();
  const auto took = CallOptions::Clock::now() - start;
  const size_t most = max_points == 0 ? kMostPoints : static_cast<size_t>(max_points);
  LocalFrontier made{ReplyOf(*frontier, most), *std::move(frontier),
                     Nanos(std::chrono::duration_cast<std::chrono::nanoseconds>(took).count())};
  made.reply.key = MakePlanKey(profile, key_options);
  return made;
}

absl::StatusOr<PlanReply> PlanFrom(const LocalFrontier& made, const Profile& profile,
                                   const KeyOptions& key_options, const Budget& budget) {
  const absl::StatusOr<Bytes> bytes = BytesOf(budget, made.frontier, profile);
  if (!bytes.ok()) return bytes.status();
  Plan plan = made.frontier.PlanAt(*bytes);
  const Instance instance = InstanceOf(profile, key_options.recompute_only);
  const absl::Status accepted = ValidatePlan(instance, &plan);
  if (!accepted.ok()) {
    return absl::InternalError(absl::StrCat("the evaluator refused a plan of ",
                                            plan.provenance.solver, ": ", accepted.message()));
  }
  StrengthenBound(instance, &plan);
  plan.provenance.solver_version = kSolverVersion;
  plan.provenance.solve_time = made.solve_time;
  plan.stage_vertices = StepVertices(profile.problem);
  return PlanReply{std::move(plan), made.reply.key, PlanSource::kLocal};
}

}  // namespace stowage
