// Feng & Huang 2018, algorithm 6, for any graph.
#include <algorithm>
#include <utility>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/division_tree.h"
#include "solvers/graph/internal/division_search.h"

namespace stowage {
namespace {

// Steps of some 10 ns.
constexpr int64_t kSweepWork = 600000000;

struct Validated {
  CheckpointSet set;
  Bytes lower_bound;  // of all sets, as the search counts
};

absl::StatusOr<Validated> SolveCounting(const CheckpointGraph& graph, const DivisionTree& tree,
                                        NeededInputs needed, const SolveContext& context,
                                        StopPoll* poll) {
  const absl::StatusOr<DivisionCosts> costs = CostsOf(graph, tree, needed, poll);
  if (!costs.ok()) return costs.status();
  DivisionSearch search(graph, tree, *costs, poll);
  absl::StatusOr<SweepResult> result =
      SweepLimits(graph.total().value(), kSweepWork, &search, context);
  if (!result.ok()) return result.status();
  absl::StatusOr<CheckpointSet> set = ValidateCheckpoints(
      graph, std::move(result->checkpoints), SegmentRule::kTwoEndPoints, nullptr, poll);
  if (!set.ok()) return set.status();
  return Validated{*std::move(set), Bytes(result->lower_bound)};
}

bool NeedsInputs(const CheckpointGraph& graph) {
  for (int v = 0; v < graph.size(); ++v) {
    if (graph.needs_inputs(v)) return true;
  }
  return false;
}

class DivisionTreeCheckpoints : public TwoEndPointsSolver {
 public:
  const SolverInfo& info() const override {
    static const auto* const kInfo = new SolverInfo{
        "division_tree",
        "least memory where each segment lies between two checkpoints (Feng & Huang 2018)",
        "all sets whose segments read one checkpoint and are read by one"};
    return *kInfo;
  }

 protected:
  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveContext& context,
                                        StopPoll* poll) const override {
    const absl::StatusOr<DivisionTree> tree = DivisionTree::Build(graph, poll);
    if (!tree.ok()) return tree.status();
    const bool twice = NeedsInputs(graph);
    absl::StatusOr<Validated> least = SolveCounting(graph, *tree, NeededInputs::kIgnored,
                                                    context.Part(0.0, twice ? 0.5 : 1.0), poll);
    if (!least.ok()) return least.status();
    CheckpointAnswer answer{std::move(least->set), least->lower_bound, false};
    if (twice) {
      absl::StatusOr<Validated> charged =
          SolveCounting(graph, *tree, NeededInputs::kAllCharged, context.Part(0.5, 1.0), poll);
      if (!charged.ok()) return charged.status();
      if (IsBetter(charged->set, answer.set)) answer.set = std::move(charged->set);
    }
    context.Report(1.0);
    answer.optimal = answer.set.objective() == answer.lower_bound;
    return answer;
  }
};

}  // namespace

const CheckpointSolver& DivisionTreeSolver() {
  static const auto* const kSolver = new DivisionTreeCheckpoints;
  return *kSolver;
}

}  // namespace stowage
