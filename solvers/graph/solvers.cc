#include "solvers/graph/solvers.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/internal/compute_order.h"
#include "solvers/graph/internal/order_search.h"
#include "solvers/graph/internal/proposals.h"
#include "solvers/graph/linearize.h"
#include "solvers/model/field_error.h"
#include "solvers/model/graph.h"
#include "solvers/model/index.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {
namespace {

// Of a frontier that begins with what takes least.
absl::StatusOr<Bytes> LeastPeak(const absl::StatusOr<Frontier>& frontier) {
  if (!frontier.ok()) return frontier.status();
  if (!frontier->info().search_complete) {
    return absl::DeadlineExceededError("the deadline passed before the least budget was found");
  }
  return frontier->points().front().peak;
}

// Of a search over all budgets, the best at one of them: who asked for it hears of it as it gets better.
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

// Computes and edges replayed: some 8 ns each.
constexpr int64_t kWorkPerVertex = 400000;
constexpr int64_t kMaxWork = 1000000000;
// A sketch may take one part of so many. It takes less, but for graphs of tens of thousands of vertices.
constexpr int64_t kSketchOfWork = 10;
// Of the exhaustive search on small graphs.
constexpr int64_t kMaxLabels = 1 << 20;
// A chain solver proposes at most so many computes for the search.
constexpr int64_t kMaxProposed = 20000000;
// Of a chain longer than that, a table of so many slots does: of graphs of 10,000 ops a finer one, which took more time than all
// else, led to no other plan.
constexpr int kLongChain = 128;
constexpr int64_t kChainSlots = 1024;
// Numbers of stages that graphs are cut into, beside the graph's own.
constexpr int kCoarsest = 24;
constexpr int kCoarse = 64;
constexpr int kMostStages = 200;
// At a deadline, of the orders found: some milliseconds.
constexpr size_t kMostAfterDeadline = 40;
// What is searched, and solved exactly on small graphs. Gradients are summed up in plain training's order.
constexpr char kAllSchedules[] =
    "all schedules that copy nothing to the host and give plain training's gradients bit for bit";

// One solve of one graph, at all budgets. With one named, its best schedule is there at a deadline, else points of all.
class Solving {
 public:
  Solving(const Instance& instance, const FoldedGraph& folded, const SolveContext& context,
          std::optional<Bytes> budget)
      : instance_(instance.WithLink(std::nullopt).Remembering()),
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
    info.search_complete = !absl::IsDeadlineExceeded(status);
    if (!info.search_complete) status = ValidateInTime(status);
    if (!status.ok()) return status;
    if (exact) {
      info.exact = true;
      info.least_budget = builder_.Build(info).points().front().peak;
    }
    return compact ? builder_.BuildCompact(std::move(info)) : builder_.Build(std::move(info));
  }

 private:
  static constexpr double kProposing = 0.1;        // share of the work, about
  static constexpr int64_t kWorkToValidate = 128;  // of each compute, about

  absl::Status SearchAndValidate(bool* exact) {
    absl::Status status = builder_.Add(instance_.store_all_schedule());
    if (status.ok()) status = Propose();
    if (status.ok()) status = Improve();
    if (status.ok() && ops_.size() <= kMaxExactVertices) status = SearchAll(exact);
    StopPoll poll(context_.stop());
    for (const OrderPool::Entry& entry : search_.pool().entries()) {
      if (status.ok())
        status = poll.Spend(kWorkToValidate * static_cast<int64_t>(entry.order.size()));
      if (status.ok()) status = Validate(entry.order);
    }
    return status;
  }

  // What there is at a deadline; `late` where that is nothing.
  absl::Status ValidateInTime(absl::Status late) {
    if (best_.budget()) {
      absl::Status status = ValidateBest();
      return status.ok() && !best_.FoundIn(builder_) ? late : status;
    }
    std::vector<PointCost> costs;
    for (const OrderPool::Entry& entry : search_.pool().entries()) {
      costs.push_back({Nanos(entry.forward_time), 0});
    }
    for (const size_t i : ChooseCompact(costs, kMostAfterDeadline)) {
      absl::Status status = Validate(search_.pool().entries()[i].order);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  int64_t Work() const { return std::min(kWorkPerVertex * ops_.size(), kMaxWork); }

  absl::Status Improve() {
    const SolveContext rest = context_.Part(kProposing, 1.0);
    return search_.Improve(
        Work(),
        [&](double share, int64_t target) {
          rest.Report(share);
          absl::Status status = ValidateWithin(target);
          return status.ok() ? TellBest() : status;
        },
        [&](int64_t target) {
          return (StrongestMakespanLowerBound(instance_, Bytes(target)) - instance_.ideal_time())
              .value();
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
    // Before what takes long, so that most of the gain is there early.
    absl::Status status = search_.Sketch(PeakLowerBound(folded_.graph).value(),
                                         Work() / kSketchOfWork, [this](double, int64_t target) {
                                           const absl::Status validated = ValidateWithin(target);
                                           return validated.ok() ? TellBest() : validated;
                                         });
    if (!status.ok()) return status;
    search_.Offer(OutputByOutputOrder(ops_, false));
    search_.Offer(OutputByOutputOrder(ops_, true));
    status = ProposeCheckpoints();
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
        ops_, search_.pool(), PeakLowerBound(folded_.graph).value(), kMaxLabels, context_.stop());
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
    const SolveContext context = context_.Part(0.0, kProposing / 2);
    const bool is_long = linear->chain.length() > kLongChain;
    const absl::StatusOr<Frontier> frontier =
        is_long
            ? SparseIntervalsSolver().SolveFrontier(linear->chain, context.WithSlots(kChainSlots))
            : ChosenChainSolver().SolveFrontier(linear->chain, context);
    if (is_long && absl::IsResourceExhausted(frontier.status())) return absl::OkStatus();
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
  OrderSearch search_;
  FrontierBuilder builder_;
  std::vector<bool> recomputable_;
};

// Lives as long as the process.
const SolverInfo& OrderSearchInfo() {
  static const auto* const kInfo = new SolverInfo{
      "order_search",   "least time on any graph: what chain solvers propose, improved op by op",
      kAllSchedules,    ScheduleClass::kRecomputing,
      /*chains=*/false,
      /*graphs=*/true,  /*copies=*/false,
      Anytime::kAlways, /*dags=*/true};
  return *kInfo;
}

// All points found, or with `compact` those that a cache would want to keep. With a budget, its best schedule
// is there at a deadline, or there is an error. Errors and cost as Solver::SolveFrontier of order_search.
absl::StatusOr<Frontier> SearchOrders(const Instance& instance, const SolveContext& context,
                                      bool compact, std::optional<Bytes> budget = std::nullopt) {
  const absl::StatusOr<FoldedGraph> folded = FoldAliases(instance.graph());
  if (!folded.ok()) return folded.status();
  Solving solving(instance, *folded, context, budget);
  return solving.Run({OrderSearchInfo().name, OrderSearchInfo().schedule_class,
                      PeakLowerBound(instance.graph()), /*exact=*/false, /*slots=*/0},
                     compact);
}

class OrderSearchSolverImpl final : public Solver {
 public:
  const SolverInfo& info() const override { return OrderSearchInfo(); }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    absl::StatusOr<std::optional<Plan>> trivial = TrivialPlan(instance, budget, OrderSearchInfo());
    if (!trivial.ok()) return trivial.status();
    if (trivial->has_value()) return **std::move(trivial);
    const absl::StatusOr<Frontier> frontier =
        SearchOrders(instance, context, /*compact=*/false, budget);
    if (!frontier.ok()) return frontier.status();
    Plan found = frontier->PlanAt(budget);
    Explain(instance, *frontier, &found);
    if (!found.search_complete) found.explanation = "the deadline cut the search short";
    return found;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    return SearchOrders(instance, context, /*compact=*/true);
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    return LeastPeak(DoSolveFrontier(instance, context));
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
        least.value(), " bytes; proven is that ", PeakLowerBound(instance.graph()).value(),
        " are needed");
  }
};

class DivisionTreeTraining final : public Solver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> DoSolve(const Instance& instance, Bytes budget,
                               const SolveContext& context) const override {
    absl::StatusOr<std::optional<Plan>> trivial = TrivialPlan(instance, budget, info_);
    if (!trivial.ok()) return trivial.status();
    if (trivial->has_value()) return **std::move(trivial);
    const absl::StatusOr<Frontier> frontier = DoSolveFrontier(instance, context);
    if (!frontier.ok()) return frontier.status();
    Plan plan = frontier->PlanAt(budget);
    plan.bounds.least_budget = frontier->points().front().peak;
    plan.explanation =
        plan.status == PlanStatus::kFound
            ? "keeps the checkpoints of the division tree, recomputes what lies between them"
            : absl::StrCat("training by the checkpoints of the division tree takes ",
                           plan.bounds.least_budget.value(), " bytes");
    return plan;
  }

  absl::StatusOr<Frontier> DoSolveFrontier(const Instance& instance,
                                           const SolveContext& context) const override {
    const Graph& graph = instance.graph();
    const absl::StatusOr<FoldedGraph> folded = FoldAliases(graph);
    if (!folded.ok()) return folded.status();
    const absl::StatusOr<std::vector<int>> segment_of =
        DivisionTreeSegments(graph, *folded, context);
    if (!segment_of.ok()) return segment_of.status();
    const OpGraph ops(folded->graph, GradientSums(graph, folded->members));
    const UnfoldedOrders orders(instance, *folded);
    FrontierBuilder builder(instance, context.frontier_limit());
    absl::Status status = builder.Add(instance.store_all_schedule());
    // Where ops of other segments run between those of the last one, holding it may take more memory.
    for (const bool last_stays : {false, true}) {
      if (status.ok()) status = context.CheckStop();
      if (!status.ok()) return status;
      const std::optional<Schedule> schedule =
          orders.ScheduleOf(CheckpointOrder(ops, *segment_of, last_stays));
      if (schedule) status = builder.Add(*schedule);
    }
    if (!status.ok()) return status;
    return builder.Build(
        {info_.name, info_.schedule_class, PeakLowerBound(graph), /*exact=*/true, /*slots=*/0});
  }

  absl::StatusOr<Bytes> DoLeastBudget(const Instance& instance,
                                      const SolveContext& context) const override {
    return LeastPeak(DoSolveFrontier(instance, context));
  }

 private:
  const SolverInfo info_ = {
      "division_tree",
      "recomputes between the checkpoints that `stowage checkpoints` finds (Feng & Huang 2018)",
      "plain training, or recomputing between the division tree's checkpoints",
      ScheduleClass::kSegments,
      /*chains=*/false,
      /*graphs=*/true};
};

SolverInfo InfoOf(const SolverInfo& chain) {
  SolverInfo info = chain;
  info.chains = false;
  info.graphs = true;
  info.cuts_graphs = true;
  info.schedule_class = absl::StrCat(chain.schedule_class, ", of the graph cut into a chain");
  return info;
}

// Calls `bytes_of` with each storage once.
template <class BytesOf>
Bytes SumOf(std::vector<int> storages, const BytesOf& bytes_of) {
  std::sort(storages.begin(), storages.end());
  storages.erase(std::unique(storages.begin(), storages.end()), storages.end());
  Bytes sum;
  for (const int storage : storages) sum += bytes_of(storage);
  return sum;
}

}  // namespace

absl::StatusOr<Frontier> AllOrders(const Instance& instance, const SolveContext& context) {
  return SearchOrders(instance, context, /*compact=*/false);
}

const Solver& OrderSearchSolver() {
  static const OrderSearchSolverImpl* const kSolver = new OrderSearchSolverImpl;
  return *kSolver;
}

const Solver& DivisionTreeTrainingSolver() {
  static const DivisionTreeTraining* const kSolver = new DivisionTreeTraining;
  return *kSolver;
}

LinearizedSolver::LinearizedSolver(const Solver* chain_solver)
    : chain_solver_(*chain_solver), info_(InfoOf(chain_solver->info())) {}

absl::StatusOr<Plan> LinearizedSolver::DoSolve(const Instance& instance, Bytes budget,
                                               const SolveContext& context) const {
  absl::StatusOr<std::optional<Plan>> trivial = TrivialPlan(instance, budget, info_);
  if (!trivial.ok()) return trivial.status();
  if (trivial->has_value()) return **std::move(trivial);
  const absl::StatusOr<Frontier> frontier = Expanded(instance, context, /*compact=*/false);
  if (!frontier.ok()) return frontier.status();
  Plan plan = frontier->PlanAt(budget);
  plan.bounds.least_budget = frontier->points().front().peak;
  return plan;
}

absl::StatusOr<Frontier> LinearizedSolver::DoSolveFrontier(const Instance& instance,
                                                           const SolveContext& context) const {
  return Expanded(instance, context, /*compact=*/true);
}

absl::StatusOr<Frontier> LinearizedSolver::Expanded(const Instance& instance,
                                                    const SolveContext& context,
                                                    bool compact) const {
  const Graph& graph = instance.graph();
  const absl::StatusOr<LinearizedGraph> linear = Linearize(graph);
  if (absl::IsInvalidArgument(linear.status())) {
    return FieldError("profile.graph", std::string(linear.status().message()),
                      "must be a chain within its limits when cut at its splitting vertices, for a "
                      "solver of chains");
  }
  if (!linear.ok()) return linear.status();
  absl::StatusOr<Frontier> frontier = chain_solver_.SolveFrontier(linear->chain, context);
  if (!frontier.ok()) return frontier.status();
  FrontierBuilder builder(instance, context.frontier_limit());
  absl::Status status = builder.Add(instance.store_all_schedule());
  StopPoll poll(context.stop());
  for (const Frontier::Point& point : frontier->points()) {
    if (status.ok()) status = poll.Spend(kStepsPerVertex * graph.size());
    if (!status.ok()) return status;
    const Plan plan = frontier->PlanAt(point.peak);
    status = builder.Add(ExpandSchedule(graph, *linear, plan.schedule));
  }
  if (!status.ok()) return status;
  FrontierInfo info = frontier->info();
  info.schedule_class = info_.schedule_class;
  info.least_budget = PeakLowerBound(graph);
  info.exact = false;
  return compact ? builder.BuildCompact(std::move(info)) : builder.Build(std::move(info));
}

absl::StatusOr<Bytes> LinearizedSolver::DoLeastBudget(const Instance& instance,
                                                      const SolveContext& context) const {
  return LeastPeak(DoSolveFrontier(instance, context));
}

Bytes PeakLowerBound(const Graph& graph) {
  Bytes least;
  std::vector<int> inputs, needed;
  const auto tensor = [&graph](int storage) { return graph.bytes(storage); };
  const auto gradient = [&graph](int storage) { return graph.vertex(storage).output_gradient; };
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    // With its own output, or the storage that it is written to.
    inputs.assign(1, graph.storage(p));
    needed.clear();
    if (v.backward_needs_output) needed.push_back(graph.storage(p));
    for (const GraphInput& input : v.inputs) {
      const int storage = graph.storage(static_cast<int>(input.vertex));
      inputs.push_back(storage);
      if (input.backward_needs) needed.push_back(storage);
    }
    const Bytes saving = v.extra_saved + v.forward_saving_overhead;
    const Bytes beside = v.extra_saved > Bytes(0) ? saving : std::min(saving, v.forward_overhead);
    Bytes forward = SumOf(inputs, tensor) + beside;
    if (v.stops() && Recomputable(v)) {
      // The first forward may save nothing, and the last one make no output.
      const Bytes first = SumOf(inputs, tensor) + std::min(saving, v.forward_overhead);
      const Bytes last = SumOf(inputs, tensor) - v.output + v.extra_saved + v.stopped_overhead();
      forward = std::min(forward, std::max(first, last));
    }
    const Bytes backward =
        SumOf(needed, tensor) + SumOf(inputs, gradient) + v.extra_saved + v.backward_overhead;
    least = std::max({least, forward, backward});
  }
  return least;
}

absl::StatusOr<std::optional<Plan>> TrivialPlan(const Instance& instance, Bytes budget,
                                                const SolverInfo& solver) {
  Plan plan;
  plan.bounds.schedule_class = solver.schedule_class;
  const Bytes least = PeakLowerBound(instance.graph());
  if (budget < least) {
    plan.status = PlanStatus::kProvenInfeasible;
    plan.bounds.least_budget = least;
    plan.explanation = absl::StrCat("some op alone needs ", least.value(),
                                    " bytes at once; --budget=least takes the smallest budget "
                                    "that a schedule is found for");
    return plan;
  }
  if (!PlanStoreAll(instance, budget, &plan)) return std::nullopt;
  return plan;
}

}  // namespace stowage
