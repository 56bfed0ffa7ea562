#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/internal/acyclic_quotient_search.h"

namespace stowage {
namespace {

constexpr int kMostVerticesOfSearch = 100000;
// Steps of some 10 ns.
constexpr int64_t kSearchWork = 50000000;
constexpr int64_t kSearchWorkPerVertex = 5000;

// Those whose sets the search starts from.
std::vector<const CheckpointSolver*> Starts() {
  return {&StoreAllCheckpointSolver(), &ChenGreedyCheckpointSolver(), &DivisionTreeSolver()};
}

class AcyclicQuotient final : public CheckpointSolver {
 public:
  const SolverInfo& info() const override { return info_; }
  SegmentRule rule() const override { return SegmentRule::kSeveralEndPoints; }

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveContext& context) const override {
    absl::Status status = context.status();
    if (!status.ok()) return status;
    std::optional<CheckpointSet> best;
    const SolveContext quiet = context.Quiet();
    for (const CheckpointSolver* start : Starts()) {
      absl::StatusOr<CheckpointAnswer> answer = start->Solve(graph, quiet);
      if (!answer.ok()) return answer.status();
      if (!best || IsBetter(answer->set, *best)) best = std::move(answer->set);
    }
    return Improve(graph, *std::move(best), context);
  }

 private:
  absl::StatusOr<CheckpointAnswer> Improve(const CheckpointGraph& graph, CheckpointSet best,
                                           const SolveContext& context) const {
    StopPoll poll(context.stop());
    const absl::StatusOr<PathBound> bound = PathBound::Create(graph, &poll);
    if (!bound.ok()) return bound.status();
    const absl::StatusOr<int64_t> least = bound->LeastObjective(&poll);
    if (!least.ok()) return least.status();
    CheckpointAnswer answer = {std::move(best), Bytes(*least), false};
    std::optional<FrontierOrder> order;
    if (graph.size() <= kMostVerticesOfSearch) {
      absl::StatusOr<std::optional<FrontierOrder>> made = MakeFrontierOrder(graph, &poll);
      if (!made.ok()) return made.status();
      order = *std::move(made);
    }
    if (order) {
      const FrontierSearch search(graph, *bound, *std::move(order));
      BandSearch bands(graph, *bound, search, &answer);
      const absl::Status status =
          bands.Run(kSearchWork + kSearchWorkPerVertex * graph.size(), &poll,
                    [&context](double share) { context.Report(share); });
      if (!status.ok()) return status;
    }
    answer.optimal = answer.set.objective() <= answer.lower_bound;
    return answer;
  }

  const SolverInfo info_ = {"acyclic_quotient",
                            "least memory found by search, where a segment may lie between any "
                            "number of checkpoints; proven on small and narrow graphs",
                            "all sets whose segments can run one after the other"};
};

}  // namespace

const CheckpointSolver& AcyclicQuotientSolver() {
  static const auto* const kSolver = new AcyclicQuotient;
  return *kSolver;
}

}  // namespace stowage
