#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/linearize.h"
#include "solvers/graph/linearized_solver.h"
#include "solvers/graph/solvers.h"
#include "solvers/graph/trivial_plan.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/schedule.h"
#include "solvers/transfer/joint_graph_solver.h"
#include "solvers/transfer/joint_solver.h"
#include "solvers/transfer/transfer_search.h"

namespace stowage {
namespace {

// Budgets of a frontier.
constexpr int64_t kGraphBudgets = 48;
// Instructions looked at for all budgets together: when schedules are offered, of which some are left
// out where they would be more, and when repeats are taken out again. Some half a microsecond each.
constexpr int64_t kMostOffered = 24000000;
constexpr int64_t kMostRetained = 6000000;
// Shares of the work done, about.
constexpr double kLinearized = 0.1;
constexpr double kOrders = 0.7;
constexpr double kOffered = 0.8;

// One solve of one graph with a link.
class Solving {
 public:
  Solving(const Instance& instance, const SolveOptions& options)
      : instance_(instance), options_(options), store_all_(instance.store_all_schedule()) {}

  // All, one after the other. After an error, what has been found until then.
  absl::Status SearchAt(TransferSearch* search) const {
    absl::Status status = search->Offer(store_all_);
    for (const auto& propose : {&Solving::Linearized, &Solving::Orders}) {
      if (!status.ok()) return status;
      const absl::StatusOr<Frontier> frontier = (this->*propose)();
      status = frontier.ok() ? OfferPoints(*frontier, search) : frontier.status();
    }
    if (status.ok()) status = OfferJointChain(search);
    return status.ok() ? Refine(search) : status;
  }

  // All at budgets that are evenly spaced from the least to that of plain training, beside what
  // order_search finds without transfers.
  absl::StatusOr<Frontier> SearchAll(FrontierInfo info) const {
    const absl::StatusOr<Proposals> proposals = Propose();
    if (!proposals.ok()) return proposals.status();
    const absl::StatusOr<Bytes> least = LeastOf(*proposals);
    if (!least.ok()) return least.status();
    const Bytes most = proposals->orders.points().back().peak;
    std::vector<Bytes> budgets;
    for (int64_t b = 0; b < kGraphBudgets; ++b) {
      budgets.push_back(*least + Bytes((most - *least).value() / kGraphBudgets * b));
    }
    TransferSearch search = SearchFor(budgets);
    absl::Status status = OfferAll(*proposals, &search);
    if (status.ok()) status = Refine(&search);
    FrontierBuilder builder(instance_, options_.frontier_limit());
    builder.Add(proposals->orders);
    for (const TransferSearch::Best& best : search.bests()) {
      if (!status.ok() || !best.found()) continue;
      status = builder.Add(JustInTimeSchedule(instance_, best.compute, best.schedule));
    }
    if (!status.ok()) return status;
    Report(1.0);
    return builder.BuildCompact(std::move(info));
  }

  absl::StatusOr<Bytes> LeastBudget() const {
    const absl::StatusOr<Proposals> proposals = Propose();
    return proposals.ok() ? LeastOf(*proposals) : proposals.status();
  }

  TransferSearch SearchFor(const std::vector<Bytes>& budgets) const {
    return TransferSearch(instance_, budgets, options_);
  }

 private:
  struct Proposals {
    Frontier linearized, orders;
  };

  void Report(double share) const {
    if (options_.progress) options_.progress(share);
  }

  SolveOptions Part(double from, double to) const {
    SolveOptions options = options_;
    options.incumbent = nullptr;
    if (!options.progress) return options;
    options.progress = [this, from, to](double share) { Report(from + (to - from) * share); };
    return options;
  }

  absl::StatusOr<Proposals> Propose() const {
    absl::StatusOr<Frontier> linearized = Linearized();
    if (!linearized.ok()) return linearized.status();
    absl::StatusOr<Frontier> orders = Orders();
    if (!orders.ok()) return orders.status();
    return Proposals{*std::move(linearized), *std::move(orders)};
  }

  absl::Status OfferAll(const Proposals& proposals, TransferSearch* search) const {
    absl::Status status = search->Offer(store_all_);
    if (status.ok()) status = OfferPoints(proposals.linearized, search);
    return status.ok() ? OfferPoints(proposals.orders, search) : status;
  }

  // The smallest budget at which a search finds anything.
  absl::StatusOr<Bytes> LeastOf(const Proposals& proposals) const {
    TransferSearch search = SearchFor({});
    absl::Status status = OfferAll(proposals, &search);
    if (!status.ok()) return status;
    return search.least_budget();
  }

  // No points where a chain of the graph would be too large for one.
  absl::StatusOr<Frontier> Linearized() const {
    const LinearizedSolver solver(&ChosenChainSolver());
    absl::StatusOr<Frontier> frontier = solver.SolveFrontier(instance_, Part(0.0, kLinearized));
    if (absl::IsInvalidArgument(frontier.status())) return Frontier();
    return frontier;
  }

  absl::StatusOr<Frontier> Orders() const {
    return AllOrders(instance_.WithLink(std::nullopt), Part(kLinearized, kOrders));
  }

  // The least memory first. Where not all of them can be looked at, those that are the fastest within
  // a budget are.
  absl::Status OfferPoints(const Frontier& frontier, TransferSearch* search) const {
    const std::vector<Frontier::Point>& points = frontier.points();
    std::vector<bool> chosen(points.size(), false);
    const size_t each = store_all_.size() * (search->bests().size() + 1);
    const size_t most = std::max<size_t>(static_cast<size_t>(kMostOffered) / each, 2);
    const size_t step = points.size() / most + 1;
    for (size_t i = 0; i < points.size(); i += step) chosen[i] = true;
    for (const TransferSearch::Best& best : search->bests()) {
      const Frontier::Point* within = frontier.At(best.budget);
      if (within != nullptr) chosen[static_cast<size_t>(within - points.data())] = true;
    }
    for (size_t i = 0; i < points.size(); ++i) {
      if (!chosen[i]) continue;
      const absl::StatusOr<Schedule> schedule =
          DecodeSchedule(points[i].schedule, kMaxInstructions);
      if (!schedule.ok()) return absl::InternalError(schedule.status().message());
      absl::Status status = search->Offer(*schedule);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // What the joint solver of chains runs at the largest budget, with the graph cut at its splitting
  // vertices; what it moves is chosen anew.
  absl::Status OfferJointChain(TransferSearch* search) const {
    const absl::StatusOr<LinearizedGraph> linear = Linearize(instance_.graph());
    if (absl::IsInvalidArgument(linear.status())) return absl::OkStatus();
    if (!linear.ok()) return linear.status();
    const absl::StatusOr<Plan> plan =
        JointSolver().Solve(Instance(linear->chain, instance_.link()),
                            search->bests().back().budget, Part(kOrders, kOffered));
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) return absl::OkStatus();
    return search->Offer(ExpandSchedule(instance_.graph(), *linear, plan->schedule));
  }

  absl::Status Refine(TransferSearch* search) const {
    const size_t budgets = search->bests().size();
    absl::Status status;
    for (size_t b = 0; status.ok() && b < budgets; ++b) {
      Report(kOffered + (1.0 - kOffered) * static_cast<double>(b) / static_cast<double>(budgets));
      status = search->OfferThoroughly(store_all_, b);
      if (status.ok()) status = search->Retain(b, kMostRetained / static_cast<int64_t>(budgets));
    }
    return status;
  }

  const Instance instance_;
  const SolveOptions& options_;
  const Schedule store_all_;
};

class JointGraphSolverImpl final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveOptions& options) const override {
    if (!instance.link()) return OrderSearchSolver().Solve(instance, budget, options);
    absl::StatusOr<std::optional<Plan>> easy = TrivialPlan(instance, budget, info_, options);
    if (!easy.ok()) return easy.status();
    if (easy->has_value()) return **std::move(easy);
    const Solving solving(instance, options);
    TransferSearch search = solving.SearchFor(UpTo(budget));
    search.ReportTo(options.incumbent);
    absl::Status status = solving.SearchAt(&search);
    const bool late = absl::IsDeadlineExceeded(status) && BestOf(search).found();
    if (!status.ok() && !late) return status;
    if (options.progress) options.progress(1.0);
    return PlanOf(instance, search, late);
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveOptions& options) const override {
    if (!instance.link()) return OrderSearchSolver().SolveFrontier(instance, options);
    return Solving(instance, options)
        .SearchAll({info_.name, info_.schedule_class, LeastNeed(instance.graph()), false, 0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveOptions& options) const override {
    if (!instance.link()) return OrderSearchSolver().LeastBudget(instance, options);
    return Solving(instance, options).LeastBudget();
  }

 private:
  // What is found in a little less memory is another place to begin from.
  static std::vector<Bytes> UpTo(Bytes budget) {
    const Bytes step(budget.value() / 32);
    return {budget - step - step, budget - step, budget};
  }

  static const TransferSearch::Best& BestOf(const TransferSearch& search) {
    return *std::min_element(search.bests().begin(), search.bests().end(),
                             [](const TransferSearch::Best& a, const TransferSearch::Best& b) {
                               return a.makespan < b.makespan;
                             });
  }

  absl::StatusOr<Plan> PlanOf(const Instance& instance, const TransferSearch& search,
                              bool late) const {
    const TransferSearch::Best& best = BestOf(search);
    Plan plan;
    plan.budget = search.bests().back().budget;
    plan.bounds.schedule_class = info_.schedule_class;
    plan.bounds.least_budget = search.least_budget();
    if (!best.found()) {
      plan.explanation = absl::StrCat("with transfers nothing was found below ",
                                      search.least_budget().value(), " bytes; proven is that ",
                                      LeastNeed(instance.graph()).value(), " are needed");
      return plan;
    }
    plan.status = PlanStatus::kFound;
    plan.search_complete = !late;
    plan.schedule = JustInTimeSchedule(instance, best.compute, best.schedule);
    plan.bounds.proven_optimal = best.makespan <= MakespanLowerBound(instance, plan.budget);
    const absl::StatusOr<Simulation> simulation = Evaluator(instance).Run(plan.schedule);
    if (!simulation.ok()) return absl::InternalError(simulation.status().message());
    plan.explanation = absl::StrCat(late ? "the best until the deadline: " : "",
                                    simulation->recomputed_forwards, " forwards run again, ",
                                    simulation->offloaded.value(), " bytes go to the host");
    return plan;
  }

  const SolverInfo info_ = {
      "joint",
      "least time on any graph that recomputes and moves tensors to host memory",
      "all schedules that recompute or copy to the host and give plain training's gradients bit "
      "for bit",
      /*chains=*/false,
      /*graphs=*/true,
      /*copies=*/true,
      /*monotone=*/false};
};

}  // namespace

const Solver& JointGraphSolver() {
  static const JointGraphSolverImpl* const kSolver = new JointGraphSolverImpl;
  return *kSolver;
}

}  // namespace stowage
