#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solvers.h"
#include "solvers/graph/frontier_order.h"
#include "solvers/graph/frontier_search.h"
#include "solvers/graph/path_bound.h"

namespace stowage {
namespace {

constexpr int kMostVertices = 100000;
constexpr int64_t kWork = 3000000;  // states looked at: about a second
constexpr size_t kFirstWidth = 16;
constexpr size_t kWidthFactor = 4;

// Those whose sets the search starts from.
std::vector<const CheckpointSolver*> Starts() {
  return {&StoreAllCheckpointSolver(), &ChenGreedyCheckpointSolver()};
}

class SeveralEnds final : public CheckpointSolver {
 public:
  const SolverInfo& info() const override { return info_; }
  SegmentRule rule() const override { return SegmentRule::kSeveralEndPoints; }

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (!status.ok()) return status;
    std::optional<CheckpointSet> best;
    SolveOptions quiet = options;
    quiet.progress = nullptr;
    for (const CheckpointSolver* start : Starts()) {
      absl::StatusOr<CheckpointAnswer> answer = start->Solve(graph, quiet);
      if (!answer.ok()) return answer.status();
      if (!best || IsBetter(answer->set, *best)) best = std::move(answer->set);
    }
    return Improve(graph, *std::move(best), options);
  }

 private:
  absl::StatusOr<CheckpointAnswer> Improve(const CheckpointGraph& graph, CheckpointSet best,
                                           const SolveOptions& options) const {
    const PathBound bound(graph);
    CheckpointAnswer answer = {std::move(best), Bytes(bound.LeastObjective()), false};
    std::optional<FrontierOrder> order;
    if (graph.size() <= kMostVertices) order = MakeFrontierOrder(graph);
    if (order) {
      StopPoll poll(options.stop);
      const FrontierSearch search(graph, bound, *std::move(order));
      absl::Status status = Search(graph, search, options, &poll, &answer);
      if (!status.ok()) return status;
    }
    if (answer.optimal) answer.lower_bound = answer.set.objective();
    answer.optimal = answer.set.objective() <= answer.lower_bound;
    return answer;
  }

  // Wider and wider, as long as the work lasts.
  absl::Status Search(const CheckpointGraph& graph, const FrontierSearch& search,
                      const SolveOptions& options, StopPoll* poll, CheckpointAnswer* answer) const {
    FrontierSearchLimits limits;
    limits.work = kWork;
    for (limits.width = kFirstWidth; limits.work > 0 && !answer->optimal;
         limits.width *= kWidthFactor) {
      const CheckpointSet& best = answer->set;
      limits.known = best.objective().value();
      limits.limit = limits.known - 1;
      limits.segment_rate =
          best.checkpoint_bytes.value() /
          std::max<double>(1.0,
                           static_cast<double>((graph.total() - best.checkpoint_bytes).value()));
      absl::StatusOr<FrontierSearchResult> found = search.Run(limits, poll);
      if (!found.ok()) return found.status();
      limits.work -= found->work;
      answer->optimal = found->complete;
      if (!found->checkpoints.empty()) {
        absl::StatusOr<CheckpointSet> set =
            JudgeCheckpoints(graph, std::move(found->checkpoints), rule());
        if (!set.ok()) return set.status();
        answer->set = *std::move(set);
      }
      if (options.progress) {
        options.progress(1.0 - static_cast<double>(std::max<int64_t>(limits.work, 0)) / kWork);
      }
    }
    return absl::OkStatus();
  }

  const SolverInfo info_ = {"several_ends",
                            "segments with any number of first and last checkpoints",
                            "segments whose graph has no cycle"};
};

}  // namespace

const CheckpointSolver& SeveralEndsSolver() {
  static const auto* const kSolver = new SeveralEnds;
  return *kSolver;
}

}  // namespace stowage
