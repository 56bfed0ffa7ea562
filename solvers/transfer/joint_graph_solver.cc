#include "solvers/transfer/solvers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/schedule.h"
#include "solvers/transfer/internal/budget_grid.h"
#include "solvers/transfer/internal/transfer_search.h"

namespace stowage {
namespace {

// Budgets that are searched at before the least one is known.
constexpr int64_t kFirstBudgets = 6;
// Instructions looked at for all budgets together: when schedules are offered, of which some are left
// out where they would be more, and when repeats are taken out again, or put in. Some half a microsecond each.
constexpr int64_t kMostOffered = 24000000;
constexpr int64_t kMostRetained = 6000000;
constexpr int64_t kMostRepeated = 3000000;
// Of the ideal time: schedules this close to what is proven are not improved.
constexpr int64_t kClose = 1000;
// Shares of the work done, about.
constexpr double kLinearized = 0.1;
constexpr double kOrders = 0.7;
constexpr double kOffered = 0.8;

// One solve of one graph with a link: what is found within the budgets of two grids. Within one of them that does not
// depend on the others, but for those of less memory: the grids may be cut off anywhere.
class Solving {
 public:
  // `most`: budgets of the grids beyond it are left out.
  Solving(const Instance& instance, Bytes most, const SolveContext& context)
      : instance_(instance.Remembering()),
        most_(most),
        context_(context),
        store_all_(instance.store_all_schedule()),
        points_(JointGrid(PeakLowerBound(instance.graph()), instance.store_all()->peak)),
        best_(most, context.incumbent()) {}

  // The fastest schedule so far.
  const FastestSchedule& best() const { return best_; }
  // The smallest budget that something is found for, once all is done.
  Bytes least_budget() const { return least_; }

  // What soon has a plan comes first. Ends as soon as the fastest schedule meets the bound. After an error, what has
  // been found until then is there.
  absl::Status Search(Nanos bound) {
    absl::Status status = SearchFirst();
    if (!status.ok() || best_.makespan() <= bound) return status;
    status = FindOrders();
    if (status.ok()) status = FindLeast();
    return status.ok() ? SearchGrid() : status;
  }

  absl::StatusOr<Bytes> LeastBudget() {
    absl::Status status = FindLinearized();
    if (status.ok()) status = FindOrders();
    if (status.ok()) status = FindLeast();
    if (!status.ok()) return status;
    return least_;
  }

  const Frontier& orders() const { return orders_; }
  // Of every budget that something was found for.
  const std::vector<TransferSearch::Best>& bests() const { return bests_; }

 private:
  // Schedules of a part are not of this solve.
  SolveContext Part(double from, double to) const { return context_.Part(from, to).Silent(); }

  // Of the budgets those that are not beyond the most.
  TransferSearch SearchFor(std::vector<Bytes> budgets) {
    budgets.erase(std::upper_bound(budgets.begin(), budgets.end(), most_), budgets.end());
    TransferSearch search(instance_, budgets, context_);
    search.ReportTo(&best_);
    return search;
  }

  void Keep(const TransferSearch& search) {
    for (const TransferSearch::Best& best : search.bests()) {
      if (best.found()) bests_.push_back(best);
    }
  }

  // What is known of the graph alone.
  absl::Status SearchFirst() {
    TransferSearch search = SearchFor(
        BudgetGrid(points_.front(), instance_.store_all()->peak, kFirstBudgets, Spacing::kEven));
    absl::Status status = search.Offer(store_all_);
    if (status.ok()) status = FindLinearized();
    if (status.ok()) status = OfferPoints(linearized_, &search);
    Keep(search);
    return status;
  }

  // From the least budget on.
  absl::Status SearchGrid() {
    TransferSearch search = SearchFor(JointGrid(least_, orders_.points().back().peak));
    absl::Status status = OfferAll(&search);
    for (size_t b = 0; status.ok() && b < search.bests().size(); ++b) {
      context_.Report(kOffered + (1.0 - kOffered) * static_cast<double>(b) /
                                     static_cast<double>(search.bests().size()));
      if (IsClose(search.bests()[b])) continue;
      status = search.OfferThoroughly(store_all_, b);
      if (status.ok()) status = search.Retain(b, kMostRetained / kJointBudgets);
      if (status.ok()) status = search.Repeat(b, kMostRepeated / kJointBudgets);
      if (status.ok()) status = search.Retain(b, kMostRepeated / kJointBudgets);
    }
    Keep(search);
    return status;
  }

  // What is left to gain is not worth the work.
  bool IsClose(const TransferSearch::Best& best) const {
    return best.found() && best.makespan <= StrongestMakespanLowerBound(instance_, best.budget) +
                                                Nanos(instance_.ideal_time().value() / kClose);
  }

  // No points where a chain of the graph would be too large for one.
  absl::Status FindLinearized() {
    const LinearizedSolver solver(&ChosenChainSolver());
    absl::StatusOr<Frontier> frontier = solver.SolveFrontier(instance_, Part(0.0, kLinearized));
    if (absl::IsInvalidArgument(frontier.status())) return absl::OkStatus();
    if (frontier.ok()) linearized_ = *std::move(frontier);
    return frontier.status();
  }

  absl::Status FindOrders() {
    absl::StatusOr<Frontier> frontier =
        AllOrders(instance_.WithLink(std::nullopt), Part(kLinearized, kOrders));
    if (!frontier.ok()) return frontier.status();
    orders_ = *std::move(frontier);
    const Frontier::Point* alone = orders_.At(most_);
    if (alone != nullptr) {
      best_.Offer(alone->schedule.Unpack(), alone->peak, alone->makespan);
    }
    return orders_.info().search_complete
               ? absl::OkStatus()
               : absl::DeadlineExceededError("the deadline passed while orders were searched");
  }

  absl::Status FindLeast() {
    TransferSearch search(instance_, {}, context_);
    absl::Status status = OfferAll(&search);
    least_ = search.least_budget();
    return status;
  }

  absl::Status OfferAll(TransferSearch* search) const {
    absl::Status status = search->Offer(store_all_);
    if (status.ok()) status = OfferPoints(linearized_, search);
    return status.ok() ? OfferPoints(orders_, search) : status;
  }

  // The least memory first. Where not all of them can be looked at, those that are the fastest within
  // a budget are; the same ones whatever the budgets of the search.
  absl::Status OfferPoints(const Frontier& frontier, TransferSearch* search) const {
    const std::vector<Frontier::Point>& points = frontier.points();
    std::vector<bool> chosen(points.size(), false);
    const size_t each = store_all_.size() * static_cast<size_t>(kJointBudgets + 1);
    const size_t most = std::max<size_t>(static_cast<size_t>(kMostOffered) / each, 2);
    const size_t step = points.size() / most + 1;
    for (size_t i = 0; i < points.size(); i += step) chosen[i] = true;
    for (const Bytes budget : points_) {
      const Frontier::Point* within = frontier.At(budget);
      if (within != nullptr) chosen[static_cast<size_t>(within - points.data())] = true;
    }
    for (size_t i = 0; i < points.size(); ++i) {
      if (!chosen[i]) continue;
      absl::Status status = search->Offer(points[i].schedule.Unpack());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const Instance instance_;
  const Bytes most_;
  const SolveContext context_;
  const Schedule store_all_;
  const std::vector<Bytes> points_;  // budgets whose fastest points are looked at in any case
  FastestSchedule best_;
  Frontier linearized_, orders_;
  Bytes least_{std::numeric_limits<int64_t>::max()};
  std::vector<TransferSearch::Best> bests_;
};

class JointGraphSolverImpl final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    if (!instance.link()) return OrderSearchSolver().Solve(instance, budget, context);
    absl::StatusOr<std::optional<Plan>> trivial = TrivialPlan(instance, budget, info_);
    if (!trivial.ok()) return trivial.status();
    if (trivial->has_value()) return **std::move(trivial);
    Solving solving(instance, budget, context);
    const Nanos bound = MakespanLowerBound(instance, budget);
    absl::Status status = solving.Search(bound);
    const bool late = absl::IsDeadlineExceeded(status) && solving.best().found();
    if (!status.ok() && !late) return status;
    Plan plan;
    plan.bounds.schedule_class = info_.schedule_class;
    if (!solving.best().found()) {
      NotFound(instance, solving.least_budget(), &plan);
      return plan;
    }
    plan.status = PlanStatus::kFound;
    plan.search_complete = !late;
    plan.schedule = JustInTime(instance, solving, late);
    const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(plan.schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    plan.bounds.proven_optimal = simulation->makespan <= bound;
    plan.explanation = absl::StrCat(late ? "the best until the deadline: " : "",
                                    simulation->recomputed_forwards, " forwards run again, ",
                                    simulation->offloaded.value(), " bytes go to the host");
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    if (!instance.link()) return OrderSearchSolver().SolveFrontier(instance, context);
    Solving solving(instance, instance.store_all()->peak, context);
    absl::Status status = solving.Search(Nanos(-1));
    const bool late = absl::IsDeadlineExceeded(status);
    if (!status.ok() && !late) return status;
    FrontierBuilder builder(instance, context.frontier_limit());
    status = builder.Add(instance.store_all_schedule());
    if (!status.ok()) return status;
    builder.Add(solving.orders());
    for (const TransferSearch::Best& best : solving.bests()) {
      status = builder.Add(JustInTimeSchedule(instance, best.compute, best.schedule));
      if (!status.ok()) return status;
    }
    return builder.BuildCompact({info_.name, info_.schedule_class, PeakLowerBound(instance.graph()),
                                 /*exact=*/false,
                                 /*slots=*/0, /*search_complete=*/!late});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    if (!instance.link()) return OrderSearchSolver().LeastBudget(instance, context);
    return Solving(instance, instance.store_all()->peak, context).LeastBudget();
  }

 private:
  // The fastest of all that is found, each with its copies just in time: that may make one faster. At a deadline the
  // one that is the fastest without that.
  static Schedule JustInTime(const Instance& instance, const Solving& solving, bool late) {
    const Evaluator evaluator(instance);
    FastestSchedule fastest(solving.best().memory());
    for (const TransferSearch::Best& best : solving.bests()) {
      if (late && best.makespan > solving.best().makespan()) continue;
      const Schedule schedule = JustInTimeSchedule(instance, best.compute, best.schedule);
      const absl::StatusOr<Simulation> simulation = evaluator.Run(schedule);
      if (simulation.ok()) fastest.Offer(schedule, simulation->peak, simulation->makespan);
      if (late) break;
    }
    // What order_search has.
    if (solving.best().makespan() < fastest.makespan()) return solving.best().schedule();
    return fastest.schedule();
  }

  static void NotFound(const Instance& instance, Bytes least, Plan* plan) {
    plan->bounds.least_budget = least;
    plan->explanation = absl::StrCat("with transfers nothing was found below ", least.value(),
                                     " bytes; proven is that ",
                                     PeakLowerBound(instance.graph()).value(), " are needed");
  }

  const SolverInfo info_ = {
      "joint",
      "least time on any graph that recomputes and moves tensors to host memory",
      "all schedules that recompute or copy to the host and give plain training's gradients bit "
      "for bit",
      ScheduleClass::kAll,
      /*chains=*/false,
      /*graphs=*/true,
      /*copies=*/true,
      Anytime::kAlways};
};

}  // namespace

const Solver& JointGraphSolver() {
  static const JointGraphSolverImpl* const kSolver = new JointGraphSolverImpl;
  return *kSolver;
}

}  // namespace stowage
