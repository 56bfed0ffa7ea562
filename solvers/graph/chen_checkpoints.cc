// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", on the splitting vertices.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "solvers/base/fraction_power.h"
#include "solvers/graph/checkpoint_solvers.h"
#include "solvers/graph/repair.h"
#include "solvers/graph/splitting_vertices.h"
#include "solvers/graph/two_end_points_solver.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

constexpr int64_t kMostBounds = 257;
constexpr int64_t kFewestBounds = 9;
constexpr int64_t kMostVisits = 16000000;  // and edges looked at, for all bounds

// The best of the sets that a subclass proposes.
class ChenCheckpoints : public TwoEndPointsSolver {
 protected:
  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveOptions& options,
                                        StopPoll* poll) const override {
    CheckpointAnswer answer;
    const std::vector<int> splitting = SplittingVertices(graph);
    absl::Status status = poll->Spend(int64_t{graph.size()} << 4);
    std::vector<std::vector<int>> sets;
    if (status.ok()) status = Propose(graph, splitting, &sets, poll);
    if (!status.ok()) return status;
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    for (size_t i = 0; i < sets.size(); ++i) {
      absl::StatusOr<CheckpointSet> set = RepairCheckpoints(graph, sets[i], poll);
      if (!set.ok()) return set.status();
      if (i == 0 || IsBetter(*set, answer.set)) answer.set = *std::move(set);
      if (options.progress) {
        options.progress(static_cast<double>(i + 1) / static_cast<double>(sets.size()));
      }
    }
    return answer;
  }

  // At least one set.
  virtual absl::Status Propose(const CheckpointGraph& graph, const std::vector<int>& splitting,
                               std::vector<std::vector<int>>* sets, StopPoll* poll) const = 0;
};

class ChenSqrtCheckpoints final : public ChenCheckpoints {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  absl::Status Propose(const CheckpointGraph&, const std::vector<int>& splitting,
                       std::vector<std::vector<int>>* sets, StopPoll*) const override {
    const size_t stages = splitting.size() - 1;
    const auto segments = static_cast<size_t>(std::lround(std::sqrt(static_cast<double>(stages))));
    std::vector<int> ends;
    for (size_t i = 1; i < segments; ++i) ends.push_back(splitting[i * stages / segments]);
    sets->push_back(std::move(ends));
    return absl::OkStatus();
  }

 private:
  const SolverInfo info_ = {
      "chen_sqrt_checkpoints",
      "sqrt(n) segments, cut at tensors that every path passes (Chen et al. 2016)",
      "the one set of that many segments"};
};

class ChenGreedyCheckpoints final : public ChenCheckpoints {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  // Bounds from the whole graph down to the largest part that no splitting vertex divides, each the
  // same share of the one before: what matters is relative.
  absl::Status Propose(const CheckpointGraph& graph, const std::vector<int>& splitting,
                       std::vector<std::vector<int>>* sets, StopPoll* poll) const override {
    std::vector<int64_t> up_to(Index(graph.size()) + 1, 0);
    for (int v = 0; v < graph.size(); ++v) {
      up_to[Index(v) + 1] = up_to[Index(v)] + graph.bytes(v).value();
    }
    int64_t part = 1;
    for (size_t i = 1; i < splitting.size(); ++i) {
      part = std::max(part, up_to[Index(splitting[i])] - up_to[Index(splitting[i - 1]) + 1]);
    }
    const int64_t size = graph.size() + static_cast<int64_t>(graph.edge_count());
    const int64_t bounds = std::clamp(kMostVisits / size, kFewestBounds, kMostBounds);
    const double all = std::max(static_cast<double>(graph.total().value()), 1.0);
    absl::Status status;
    for (int64_t b = 0; b < bounds && status.ok(); ++b) {
      const double step = static_cast<double>(b) / static_cast<double>(bounds - 1);
      const double share = FractionPower(static_cast<double>(part) / all, step);
      sets->push_back(EndsUnder(all * share, splitting, up_to));
      status = poll->Spend(static_cast<int64_t>(splitting.size()) << 2);
    }
    return status;
  }

 private:
  // A segment ends where its bytes, the end's included, exceed the bound.
  static std::vector<int> EndsUnder(double bound, const std::vector<int>& splitting,
                                    const std::vector<int64_t>& up_to) {
    std::vector<int> ends;
    int64_t begin = 0;
    for (const int v : splitting) {
      if (static_cast<double>(up_to[Index(v) + 1] - begin) <= bound) continue;
      ends.push_back(v);
      begin = up_to[Index(v) + 1];
    }
    return ends;
  }

  const SolverInfo info_ = {"chen_greedy_checkpoints",
                            "segments up to a bound on their bytes, cut at tensors that every path "
                            "passes; the best of up "
                            "to 257 bounds (Chen et al. 2016)",
                            "the sets of these bounds"};
};

}  // namespace

const CheckpointSolver& ChenSqrtCheckpointSolver() {
  static const auto* const kSolver = new ChenSqrtCheckpoints;
  return *kSolver;
}

const CheckpointSolver& ChenGreedyCheckpointSolver() {
  static const auto* const kSolver = new ChenGreedyCheckpoints;
  return *kSolver;
}

}  // namespace stowage
