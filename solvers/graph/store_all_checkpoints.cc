#include <numeric>
#include <vector>

#include "solvers/graph/checkpoint_solvers.h"

namespace stowage {
namespace {

class StoreAllCheckpoints final : public CheckpointSolver {
 public:
  const SolverInfo& info() const override { return info_; }
  SegmentRule rule() const override { return SegmentRule::kTwoEndPoints; }

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveOptions& options) const override {
    absl::Status status = ValidateSolveOptions(options);
    if (status.ok()) status = StopPoll(options.stop).Spend(graph.size());
    if (!status.ok()) return status;
    std::vector<int> all(static_cast<size_t>(graph.size()));
    std::iota(all.begin(), all.end(), 0);
    absl::StatusOr<CheckpointSet> set = JudgeCheckpoints(graph, std::move(all), rule());
    if (!set.ok()) return set.status();
    return CheckpointAnswer{*std::move(set), Bytes(0), false};
  }

 private:
  const SolverInfo info_ = {"keep_all", "every vertex is a checkpoint: plain training",
                            "the set of all vertices"};
};

}  // namespace

const CheckpointSolver& StoreAllCheckpointSolver() {
  static const auto* const kSolver = new StoreAllCheckpoints;
  return *kSolver;
}

}  // namespace stowage
