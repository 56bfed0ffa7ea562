#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/compute_order.h"
#include "solvers/graph/exact_orders.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/linearize.h"
#include "solvers/graph/order_search.h"
#include "solvers/graph/proposals.h"
#include "solvers/graph/solvers.h"
#include "solvers/graph/trivial_plan.h"
#include "solvers/model/graph.h"
#include "solvers/model/index.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

// Of a search over all budgets, the best at one of them: who asked for it hears of it as it gets better.
// Internal to solvers/graph.

// Not thread-safe. Without a budget nothing is found and nobody told.
class BestWithin {
 public:
  BestWithin(std::optional<Bytes> budget, std::function<void(const Schedule&)> tell)
      : budget_(budget), tell_(std::move(tell)) {}

  const std::optional<Bytes>& budget() const { return budget_; }

  bool FoundIn(const FrontierBuilder& points) const {
    return budget_ && points.At(*budget_) != nullptr;
  }

  // Tells of the fastest point, if it is faster than those told of before.
  absl::Status TellOf(const FrontierBuilder& points) {
    if (!tell_ || !FoundIn(points)) return absl::OkStatus();
    const Frontier::Point& best = *points.At(*budget_);
    if (best.makespan >= told_) return absl::OkStatus();
    told_ = best.makespan;
    tell_(best.schedule.Unpack());
    return absl::OkStatus();
  }

 private:
  const std::optional<Bytes> budget_;
  const std::function<void(const Schedule&)> tell_;
  Nanos told_{std::numeric_limits<int64_t>::max()};
};

// The search behind order_search (solvers.h): what chain solvers propose for a graph, improved op by op, and all
// orders of small ones.

// All points found, or with `compact` those that a cache would want to keep. With a budget, its best schedule
// is there at a deadline, and `cut_short`, which may be null, says whether that ended the search. Errors and
// cost as Solver::SolveFrontier of order_search.
absl::StatusOr<Frontier> SearchOrders(const Instance& instance, const SolveContext& context,
                                      bool compact, std::optional<Bytes> budget = std::nullopt,
                                      bool* cut_short = nullptr);

// Computes and edges replayed: some 8 ns each.
constexpr int64_t kWorkPerVertex = 1200000;
constexpr int64_t kMaxWork = 2000000000;
// Larger graphs get proposals only.
constexpr int kMaxSearched = 20000;
// Of the exhaustive search on small graphs.
constexpr int64_t kMaxLabels = 1 << 20;
// A chain solver proposes at most so many computes for the search.
constexpr int64_t kMaxProposed = 20000000;
// Numbers of stages that graphs are cut into, beside the graph's own.
constexpr int kCoarsest = 24;
constexpr int kCoarse = 64;
constexpr int kMostStages = 200;
// What is searched, and solved exactly on small graphs. Gradients are summed up in plain training's order.
constexpr char kAllSchedules[] =
    "all schedules that copy nothing to the host and give plain training's gradients bit for bit";

// One solve of one graph, at all budgets. With one named, its best schedule is there at a deadline.
class Solving {
 public:
  Solving(const Instance& instance, const FoldedGraph& folded, const SolveContext& context,
          std::optional<Bytes> budget)
      : instance_(instance),
        graph_(instance_.graph()),
        folded_(folded),
        ops_(folded.graph, GradientSums(graph_, folded.members)),
        orders_(instance, folded),
        context_(context),
        best_(budget, context.incumbent()),
        search_(ops_, context),
        builder_(instance, context.frontier_limit()) {
    for (int v = 0; v < ops_.size(); ++v) recomputable_.push_back(ops_.costs(v).recomputable);
  }

  // All points found, or those that a cache would want to keep.
  absl::StatusOr<Frontier> Run(FrontierInfo info, bool compact) {
    bool exact = false;
    absl::Status status = SearchAndValidate(&exact);
    if (absl::IsDeadlineExceeded(status) && ValidateBest().ok() && best_.FoundIn(builder_)) {
      cut_short_ = true;
      return builder_.Build(std::move(info));
    }
    if (!status.ok()) return status;
    if (exact) {
      info.exact = true;
      info.least_budget = builder_.Build(info).points().front().peak;
    }
    return compact ? builder_.BuildCompact(std::move(info)) : builder_.Build(std::move(info));
  }

  bool cut_short() const { return cut_short_; }

 private:
  static constexpr double kProposing = 0.1;        // share of the work, about
  static constexpr int64_t kWorkToValidate = 128;  // of each compute, about

  absl::Status SearchAndValidate(bool* exact) {
    absl::Status status = builder_.Add(instance_.store_all_schedule());
    if (status.ok()) status = Propose();
    if (status.ok() && ops_.size() <= kMaxSearched) status = Improve();
    if (status.ok() && ops_.size() <= kMaxExactVertices) status = SearchAll(exact);
    StopPoll poll(context_.stop());
    for (const OrderPool::Entry& entry : search_.pool().entries()) {
      if (status.ok())
        status = poll.Spend(kWorkToValidate * static_cast<int64_t>(entry.order.size()));
      if (status.ok()) status = Validate(entry.order);
    }
    return status;
  }

  absl::Status Improve() {
    const SolveContext rest = context_.Part(kProposing, 1.0);
    return search_.Improve(std::min(kWorkPerVertex * ops_.size(), kMaxWork),
                           [&](double share, int64_t target) {
                             rest.Report(share);
                             absl::Status status = ValidateWithin(target);
                             return status.ok() ? TellBest() : status;
                           });
  }

  // Validates the fastest order of the pool within a budget, if that is news.
  absl::Status ValidateWithin(int64_t budget) {
    const size_t within = search_.pool().Within(budget);
    if (within == 0) return absl::OkStatus();
    const OrderPool::Entry& entry = search_.pool().entries()[within - 1];
    if (!validated_.emplace(entry.peak, entry.forward_time).second) return absl::OkStatus();
    return Validate(entry.order);
  }

  absl::Status ValidateBest() {
    return best_.budget() ? ValidateWithin(best_.budget()->value()) : absl::OkStatus();
  }

  // Where the graph has aliases, a point that is only looked for because of the budget may be one that the search
  // for another budget never sees: more budget could then be slower.
  absl::Status TellBest() {
    absl::Status status = orders_.IsFolded() ? absl::OkStatus() : ValidateBest();
    return status.ok() ? best_.TellOf(builder_) : status;
  }

  absl::Status Propose() {
    search_.Offer(StoreAllOrder(ops_));
    // What follows splits the step into forwards and backwards.
    if (!ops_.has_backwards()) return absl::OkStatus();
    search_.Offer(OutputByOutputOrder(ops_, false));
    search_.Offer(OutputByOutputOrder(ops_, true));
    absl::Status status = ProposeCheckpoints();
    if (status.ok()) status = ProposeLinearized();
    if (status.ok() && ops_.size() <= kMostStages) status = ProposeCuts(ops_.size());
    for (const int stages : {kCoarse, kCoarsest}) {
      if (status.ok()) status = ProposeCuts(stages);
    }
    return status;
  }

  // What is found for a graph folded from aliases is no proof for the graph itself.
  absl::Status SearchAll(bool* exact) {
    const absl::StatusOr<ExactOrders> all = SearchAllOrders(
        ops_, search_.pool(), LeastNeed(folded_.graph).value(), kMaxLabels, context_.stop());
    if (!all.ok()) return all.status();
    for (const ComputeOrder& order : all->orders) search_.Offer(order);
    *exact = all->complete && !orders_.IsFolded();
    return absl::OkStatus();
  }

  absl::Status ProposeCheckpoints() {
    const absl::StatusOr<ComputeOrder> order =
        CheckpointTraining(graph_, folded_, ops_, context_.Quiet());
    if (!order.ok()) return order.status();
    search_.Offer(*order);
    absl::Status status = Validate(*order);
    return status.ok() ? TellBest() : status;
  }

  // What the chain solver does with the graph cut at its splitting vertices. Every point counts.
  absl::Status ProposeLinearized() {
    const absl::StatusOr<LinearizedGraph> linear = Linearize(graph_);
    // A chain counts some bytes more than once: they may be too many for one.
    if (absl::IsInvalidArgument(linear.status())) return absl::OkStatus();
    if (!linear.ok()) return linear.status();
    const absl::StatusOr<Frontier> frontier =
        ChosenChainSolver().SolveFrontier(linear->chain, context_.Part(0.0, kProposing / 2));
    if (!frontier.ok()) return frontier.status();
    std::vector<std::vector<int>> stages(linear->stage_begin.size() - 1);
    for (int g = 0; g < ops_.size(); ++g) {
      const auto after = std::upper_bound(linear->stage_begin.begin(), linear->stage_begin.end(),
                                          folded_.members[Index(g)].front());
      if (after == linear->stage_begin.begin()) continue;  // a^0
      stages[static_cast<size_t>(after - linear->stage_begin.begin()) - 1].push_back(g);
    }
    absl::Status status = OfferSchedules(*frontier, stages);
    if (!status.ok()) return status;
    status = ForSchedules(*frontier, frontier->points().size(), [&](const Schedule& schedule) {
      return builder_.Add(ExpandSchedule(graph_, *linear, schedule));
    });
    return status.ok() ? TellBest() : status;
  }

  absl::Status ProposeCuts(int stages) {
    const std::vector<int> cuts = ChooseCuts(ops_, stages);
    for (const Crossing crossing : {Crossing::kOfItsMaker, Crossing::kOfEveryStage}) {
      const absl::StatusOr<Chain> chain = ChainOfCuts(ops_, cuts, crossing);
      // Bytes counted many times over may be more than a chain can say.
      if (absl::IsInvalidArgument(chain.status())) continue;
      if (!chain.ok()) return chain.status();
      const SolveContext context = context_.Quiet().WithSlots(0);
      const absl::StatusOr<Frontier> frontier =
          OptimalPersistentSolver().SolveFrontier(*chain, context);
      if (absl::IsResourceExhausted(frontier.status())) continue;
      if (!frontier.ok()) return frontier.status();
      absl::Status status = OfferSchedules(*frontier, StagesOfCuts(cuts));
      if (status.ok()) status = TellBest();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Some of them where all would be too much.
  absl::Status OfferSchedules(const Frontier& frontier,
                              const std::vector<std::vector<int>>& stages) {
    const auto most = static_cast<size_t>(std::max<int64_t>(kMaxProposed / ops_.size(), 2));
    return ForSchedules(frontier, most, [&](const Schedule& schedule) {
      search_.Offer(ExpandStages(schedule, stages, recomputable_));
      return absl::OkStatus();
    });
  }

  // Hands at most `most` points of a frontier to `take`.
  template <class Take>
  absl::Status ForSchedules(const Frontier& frontier, size_t most, const Take& take) {
    StopPoll poll(context_.stop());
    const size_t step = frontier.points().size() / most + 1;
    for (size_t i = 0; i < frontier.points().size();
         i += most >= frontier.points().size() ? 1 : step) {
      absl::Status status = poll.Spend(kWorkToValidate * ops_.size());
      if (status.ok()) status = take(frontier.points()[i].schedule.Unpack());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // An order of the folded graph that is none of the graph itself is no answer.
  absl::Status Validate(const ComputeOrder& order) {
    const std::optional<Schedule> schedule = orders_.ScheduleOf(order);
    return schedule ? builder_.Add(*schedule) : absl::OkStatus();
  }

  const Instance instance_;
  const Graph& graph_;
  const FoldedGraph& folded_;
  const OpGraph ops_;
  const UnfoldedOrders orders_;
  const SolveContext context_;
  BestWithin best_;
  std::set<std::pair<int64_t, int64_t>> validated_;  // peaks and times of orders
  bool cut_short_ = false;
  OrderSearch search_;
  FrontierBuilder builder_;
  std::vector<bool> recomputable_;
};

// Lives as long as the process.
const SolverInfo& OrderSearchInfo() {
  static const auto* const kInfo = new SolverInfo{
      "order_search",   "least time on any graph: what chain solvers propose, improved op by op",
      kAllSchedules,    /*chains=*/false,
      /*graphs=*/true,  /*copies=*/false,
      Anytime::kAlways, /*dags=*/true};
  return *kInfo;
}

absl::StatusOr<Frontier> SearchOrders(const Instance& instance, const SolveContext& context,
                                      bool compact, std::optional<Bytes> budget, bool* cut_short) {
  const absl::StatusOr<FoldedGraph> folded = FoldAliases(instance.graph());
  if (!folded.ok()) return folded.status();
  Solving solving(instance, *folded, context, budget);
  absl::StatusOr<Frontier> frontier = solving.Run(
      {OrderSearchInfo().name, OrderSearchInfo().schedule_class, LeastNeed(instance.graph()),
       /*exact=*/false, /*slots=*/0},
      compact);
  if (cut_short != nullptr) *cut_short = solving.cut_short();
  return frontier;
}

class OrderSearchSolverImpl final : public Solver {
 public:
  const SolverInfo& info() const override { return OrderSearchInfo(); }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    absl::StatusOr<std::optional<Plan>> easy = TrivialPlan(instance, budget, OrderSearchInfo());
    if (!easy.ok()) return easy.status();
    if (easy->has_value()) return **std::move(easy);
    bool cut_short = false;
    const absl::StatusOr<Frontier> frontier =
        SearchOrders(instance, context, /*compact=*/false, budget, &cut_short);
    if (!frontier.ok()) return frontier.status();
    Plan found = frontier->PlanAt(budget);
    Explain(instance, *frontier, &found);
    found.search_complete = !cut_short;
    if (cut_short) found.explanation = "the deadline cut the search short";
    return found;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    return SearchOrders(instance, context, /*compact=*/true);
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    const absl::StatusOr<Frontier> frontier = DoSolveFrontier(instance, context);
    if (!frontier.ok()) return frontier.status();
    return frontier->points().front().peak;
  }

 private:
  static void Explain(const Instance& instance, const Frontier& frontier, Plan* plan) {
    const Bytes least = frontier.points().front().peak;
    plan->bounds.least_budget = least;
    if (plan->status == PlanStatus::kFound) {
      plan->bounds.proven_optimal =
          frontier.info().exact ||
          frontier.At(plan->budget)->makespan <= MakespanLowerBound(instance, plan->budget);
    }
    if (plan->status != PlanStatus::kNotFound) return;
    plan->explanation = absl::StrCat(
        instance.kind() == ProblemKind::kDag
            ? "plain training and a search from it found nothing below "
            : "plain training, checkpoints, chain solvers and a search from what they propose "
              "found nothing below ",
        least.value(), " bytes; proven is that ", LeastNeed(instance.graph()).value(),
        " are needed");
  }
};

}  // namespace

absl::StatusOr<Frontier> AllOrders(const Instance& instance, const SolveContext& context) {
  return SearchOrders(instance, context, /*compact=*/false);
}

const Solver& OrderSearchSolver() {
  static const OrderSearchSolverImpl* const kSolver = new OrderSearchSolverImpl;
  return *kSolver;
}

}  // namespace stowage
