#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solvers.h"
#include "solvers/graph/repair.h"
#include "solvers/graph/two_end_points_solver.h"

namespace stowage {
namespace {

constexpr uint64_t kSeed = 2018;
constexpr int kDraws = 10;
constexpr uint64_t kMostCheckpoints = 5;
constexpr int64_t kMostTries = 10000;
constexpr int64_t kMostDrawn = 100000000;  // and edges looked at, in all tries

class RandomCheckpoints final : public TwoEndPointsSolver {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveOptions&,
                                        StopPoll* poll) const override {
    const int64_t size = graph.size() + static_cast<int64_t>(graph.edge_count());
    const int64_t tries = std::min(kMostTries, kMostDrawn / size + kDraws);
    std::vector<int> given, free;
    for (int v = 0; v < graph.size(); ++v) {
      const bool end = v == graph.source() || v == graph.target();
      (end || graph.must_keep(v) ? given : free).push_back(v);
    }
    std::mt19937_64 rng(kSeed);
    CheckpointAnswer answer;
    int valid = 0;
    for (int64_t i = 0; i < tries && valid < kDraws; ++i) {
      absl::StatusOr<CheckpointSet> set =
          JudgeCheckpoints(graph, Draw(given, &free, &rng), rule(), nullptr, poll);
      if (absl::IsInvalidArgument(set.status())) continue;
      if (!set.ok()) return set.status();
      if (valid == 0 || IsBetter(*set, answer.set)) answer.set = *std::move(set);
      ++valid;
    }
    if (valid > 0) return answer;
    absl::StatusOr<CheckpointSet> ends = RepairCheckpoints(graph, {}, poll);
    if (!ends.ok()) return ends.status();
    answer.set = *std::move(ends);
    return answer;
  }

 private:
  // Adds 1 to 5 of the free ones, which get another order, to the given ones. The same on every
  // platform: the remainder's bias is nothing here, the order of draws is fixed.
  static std::vector<int> Draw(const std::vector<int>& given, std::vector<int>* free,
                               std::mt19937_64* rng) {
    std::vector<int> set = given;
    const size_t count = std::min<size_t>(1 + (*rng)() % kMostCheckpoints, free->size());
    for (size_t i = 0; i < count; ++i) {
      std::swap((*free)[i], (*free)[i + (*rng)() % (free->size() - i)]);
      set.push_back((*free)[i]);
    }
    return set;
  }

  const SolverInfo info_ = {"random_checkpoints",
                            "the best of 10 random sets of 1 to 5 checkpoints, for comparison",
                            "the sets that were drawn"};
};

}  // namespace

const CheckpointSolver& RandomCheckpointSolver() {
  static const auto* const kSolver = new RandomCheckpoints;
  return *kSolver;
}

}  // namespace stowage
