#include <numeric>
#include <vector>

#include "solvers/graph/checkpoint_solvers.h"
#include "solvers/graph/two_end_points_solver.h"

namespace stowage {
namespace {

class StoreAllCheckpoints final : public TwoEndPointsSolver {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveOptions&,
                                        StopPoll* poll) const override {
    std::vector<int> all(static_cast<size_t>(graph.size()));
    std::iota(all.begin(), all.end(), 0);
    absl::StatusOr<CheckpointSet> set =
        JudgeCheckpoints(graph, std::move(all), rule(), nullptr, poll);
    if (!set.ok()) return set.status();
    return CheckpointAnswer{*std::move(set), Bytes(0), false};
  }

 private:
  const SolverInfo info_ = {"keep_all", "keeps every tensor, as plain training does",
                            "the set of all tensors"};
};

}  // namespace

const CheckpointSolver& StoreAllCheckpointSolver() {
  static const auto* const kSolver = new StoreAllCheckpoints;
  return *kSolver;
}

}  // namespace stowage
