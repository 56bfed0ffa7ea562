#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/budget/order_search.h"
#include "solvers/graph/budget/solvers.h"
#include "solvers/graph/budget/stage_cuts.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/linearize.h"
#include "solvers/plan/graph_liveness.h"
#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/graph_store_all.h"
#include "solvers/plan/schedule_code.h"

namespace stowage {
namespace {

constexpr int64_t kMaxInstructions = int64_t{1} << 24;
constexpr int64_t kWork = 300000000;

// The planner's own choice for chains.
absl::StatusOr<Frontier> ChainFrontier(const Chain& chain, const SolveOptions& options) {
  constexpr int kMaxStagesBeyond = 128;
  absl::StatusOr<Frontier> frontier = absl::ResourceExhaustedError("too long");
  if (chain.length() <= kMaxStagesBeyond) {
    frontier = BeyondPersistentSolver().SolveFrontier(chain, options);
  }
  if (absl::IsResourceExhausted(frontier.status())) {
    frontier = OptimalPersistentSolver().SolveFrontier(chain, options);
  }
  if (absl::IsResourceExhausted(frontier.status())) {
    frontier = CheckpointSequentialSolver().SolveFrontier(chain, options);
  }
  return frontier;
}

std::vector<bool> RecomputableOf(const Graph& graph) {
  std::vector<bool> recomputable;
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    recomputable.push_back(!v.inputs.empty() && !v.collective && !v.must_keep);
  }
  return recomputable;
}

// One solve of one graph.
class Solving {
 public:
  Solving(const Graph& graph, const FoldedGraph& folded, const OpGraph& ops,
          const SolveOptions& options)
      : graph_(graph),
        folded_(folded),
        ops_(ops),
        options_(options),
        search_(ops, options),
        builder_(graph) {}

  absl::Status Run() {
    absl::Status status = builder_.Add(StoreAllSchedule(graph_));
    if (!status.ok()) return status;
    search_.Offer(StoreAllOrder(ops_));
    status = AddLinearized();
    for (const int stages : {ops_.size(), 64, 24}) {
      if (!status.ok()) return status;
      if (stages == ops_.size() && stages > 200) continue;
      for (const Crossing crossing : {Crossing::kOfItsMaker, Crossing::kOfEveryStage}) {
        if (status.ok()) status = AddCuts(stages, crossing);
      }
    }
    if (status.ok()) status = search_.Improve(kWork, options_.progress);
    if (!status.ok()) return status;
    for (const OrderPool::Entry& entry : search_.pool().entries()) {
      status = AddOrder(entry.order);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  const FrontierBuilder& builder() const { return builder_; }

 private:
  // Hands every point of a frontier to `take`.
  template <class Take>
  absl::Status ForSchedules(const Frontier& frontier, Take take) {
    for (const Frontier::Point& point : frontier.points()) {
      absl::StatusOr<Schedule> schedule = DecodeSchedule(point.schedule, kMaxInstructions);
      if (!schedule.ok()) return absl::InternalError(schedule.status().message());
      absl::Status status = take(*schedule);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status AddLinearized() {
    absl::StatusOr<LinearizedGraph> linear = Linearize(graph_);
    if (!linear.ok()) return linear.status();
    const absl::StatusOr<Frontier> frontier = ChainFrontier(linear->chain, options_);
    if (!frontier.ok()) return frontier.status();
    std::vector<std::vector<int>> stages;
    int p = graph_.size();
    for (const auto& ids : linear->stage_vertices) p -= static_cast<int>(ids.size());
    for (const auto& ids : linear->stage_vertices) {
      std::vector<int>& stage = stages.emplace_back();
      for (size_t k = 0; k < ids.size(); ++k) stage.push_back(p++);
    }
    std::vector<int> group_of(static_cast<size_t>(graph_.size()));
    for (size_t g = 0; g < folded_.members.size(); ++g) {
      for (const int m : folded_.members[g]) group_of[static_cast<size_t>(m)] = static_cast<int>(g);
    }
    std::vector<std::vector<int>> folded_stages;
    for (const std::vector<int>& stage : stages) {
      std::vector<int>& of = folded_stages.emplace_back();
      for (const int m : stage) {
        const int g = group_of[static_cast<size_t>(m)];
        if (folded_.members[static_cast<size_t>(g)].front() == m) of.push_back(g);
      }
      std::sort(of.begin(), of.end());
    }
    return ForSchedules(*frontier, [&](const Schedule& schedule) {
      search_.Offer(ExpandStages(schedule, folded_stages, RecomputableOf(folded_.graph)));
      const ComputeOrder order = ExpandStages(schedule, stages, RecomputableOf(graph_));
      return builder_.Add(WithDiscards(graph_, ToSchedule(order)));
    });
  }

  absl::Status AddCuts(int stages, Crossing crossing) {
    const std::vector<int> cuts = ChooseCuts(ops_, stages);
    const absl::StatusOr<Chain> chain = ChainOfCuts(ops_, cuts, crossing);
    if (!chain.ok()) return chain.status();
    const absl::StatusOr<Frontier> frontier =
        OptimalPersistentSolver().SolveFrontier(*chain, options_);
    if (!frontier.ok()) return frontier.status();
    return ForSchedules(*frontier, [&](const Schedule& schedule) {
      search_.Offer(ExpandStages(schedule, StagesOfCuts(cuts), RecomputableOf(folded_.graph)));
      return absl::OkStatus();
    });
  }

  absl::Status AddOrder(const ComputeOrder& order) {
    Schedule schedule = ToSchedule(order);
    schedule = UnfoldCompute(folded_, schedule);
    return builder_.Add(WithDiscards(graph_, schedule));
  }

  const Graph& graph_;
  const FoldedGraph& folded_;
  const OpGraph& ops_;
  const SolveOptions& options_;
  OrderSearch search_;
  FrontierBuilder builder_;
};

class OrderSearchSolverImpl final : public GraphSolver {
 public:
  const SolverInfo& info() const override { return info_; }

  absl::StatusOr<Plan> Solve(const Graph& graph, Bytes budget,
                             const SolveOptions& options) const override {
    absl::StatusOr<Frontier> frontier = SolveFrontier(graph, options);
    if (!frontier.ok()) return frontier.status();
    return frontier->PlanAt(budget);
  }

  absl::StatusOr<Frontier> SolveFrontier(const Graph& graph,
                                         const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    absl::StatusOr<FoldedGraph> folded = FoldAliases(graph);
    if (!folded.ok()) return folded.status();
    const OpGraph ops(folded->graph);
    Solving solving(graph, *folded, ops, options);
    status = solving.Run();
    if (!status.ok()) return status;
    return solving.builder().BuildCompact({info_.name, info_.schedule_class, Bytes(0), false, 0});
  }

  absl::StatusOr<Bytes> LeastBudget(const Graph& graph,
                                    const SolveOptions& options) const override {
    absl::StatusOr<Frontier> frontier = SolveFrontier(graph, options);
    if (!frontier.ok()) return frontier.status();
    return frontier->points().front().peak;
  }

 private:
  const SolverInfo info_ = {"order_search", "x", "all schedules"};
};

}  // namespace

const GraphSolver& OrderSearchSolver() {
  static const OrderSearchSolverImpl* const kSolver = new OrderSearchSolverImpl;
  return *kSolver;
}

const std::vector<const GraphSolver*>& AllGraphSolvers() {
  static const auto* const kSolvers = new std::vector<const GraphSolver*>{&OrderSearchSolver()};
  return *kSolvers;
}

}  // namespace stowage
