#include "solvers/graph/checkpoint_solver.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/base/fraction_power.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/graph/division_tree.h"
#include "solvers/graph/internal/acyclic_quotient_search.h"
#include "solvers/graph/internal/division_search.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// What the solvers whose segments have two end points share.
class TwoEndPointsSolver : public CheckpointSolver {
 public:
  explicit TwoEndPointsSolver(SolverInfo info)
      : CheckpointSolver(SegmentRule::kTwoEndPoints, std::move(info)) {}

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveContext& context) const final {
    const absl::Status valid = context.status();
    if (!valid.ok()) return valid;
    StopPoll poll(context.stop());
    return Find(graph, context, &poll);
  }

 protected:
  // Of valid options, whose stop token `poll` checks.
  virtual absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph,
                                                const SolveContext& context,
                                                StopPoll* poll) const = 0;
};

class StoreAllCheckpoints final : public TwoEndPointsSolver {
 public:
  StoreAllCheckpoints()
      : TwoEndPointsSolver(
            {"keep_all", "keeps every tensor, as plain training does", "the set of all tensors"}) {}

 protected:
  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveContext&,
                                        StopPoll* poll) const override {
    std::vector<int> all(static_cast<size_t>(graph.size()));
    std::iota(all.begin(), all.end(), 0);
    absl::StatusOr<CheckpointSet> set =
        ValidateCheckpoints(graph, std::move(all), rule(), nullptr, poll);
    if (!set.ok()) return set.status();
    return CheckpointAnswer{*std::move(set), Bytes(0), false};
  }
};

// Feng & Huang 2018, algorithm 1, for graphs that are one path: the division tree is one Linear node.
class LinearGraphCheckpoints : public CheckpointSolver {
 public:
  LinearGraphCheckpoints()
      : CheckpointSolver(
            SegmentRule::kTwoEndPoints,
            {"linear", "least memory of a graph that is one path (Feng & Huang 2018, algorithm 1)",
             "all sets of the path's tensors"}) {}

  absl::StatusOr<CheckpointAnswer> Solve(const CheckpointGraph& graph,
                                         const SolveContext& context) const override {
    for (int v = 0; v < graph.size(); ++v) {
      if (graph.inputs(v).size() > 1) {
        return absl::FailedPreconditionError(
            absl::StrCat("linear is for graphs that are one path; vertex ", v, " has ",
                         graph.inputs(v).size(), " inputs"));
      }
    }
    return DivisionTreeSolver().Solve(graph, context);
  }
};

// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", on the splitting vertices.

constexpr int64_t kMostBounds = 257;
constexpr int64_t kFewestBounds = 9;
constexpr int64_t kMostVisits = 16000000;  // and edges looked at, for all bounds

// The best of the sets that a subclass proposes.
class ChenCheckpoints : public TwoEndPointsSolver {
 protected:
  using TwoEndPointsSolver::TwoEndPointsSolver;

  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveContext& context,
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
      context.Report(static_cast<double>(i + 1) / static_cast<double>(sets.size()));
    }
    return answer;
  }

  // At least one set.
  virtual absl::Status Propose(const CheckpointGraph& graph, const std::vector<int>& splitting,
                               std::vector<std::vector<int>>* sets, StopPoll* poll) const = 0;
};

class ChenSqrtCheckpoints final : public ChenCheckpoints {
 public:
  ChenSqrtCheckpoints()
      : ChenCheckpoints(
            {"chen_sqrt_checkpoints",
             "sqrt(n) segments, cut at tensors that every path passes (Chen et al. 2016)",
             "the one set of that many segments"}) {}

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
};

class ChenGreedyCheckpoints final : public ChenCheckpoints {
 public:
  ChenGreedyCheckpoints()
      : ChenCheckpoints({"chen_greedy_checkpoints",
                         "segments up to a bound on their bytes, cut at tensors that every path "
                         "passes; the best of up "
                         "to 257 bounds (Chen et al. 2016)",
                         "the sets of these bounds"}) {}

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
};

constexpr uint64_t kSeed = 2018;
constexpr int kDraws = 10;
constexpr uint64_t kMostCheckpoints = 5;
constexpr int64_t kMostTries = 10000;
constexpr int64_t kMostDrawn = 100000000;  // and edges looked at, in all tries

class RandomCheckpoints final : public TwoEndPointsSolver {
 public:
  RandomCheckpoints()
      : TwoEndPointsSolver({"random_checkpoints",
                            "the best of 10 random sets of 1 to 5 checkpoints, for comparison",
                            "the sets that were drawn"}) {}

 protected:
  absl::StatusOr<CheckpointAnswer> Find(const CheckpointGraph& graph, const SolveContext&,
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
          ValidateCheckpoints(graph, Draw(given, &free, &rng), rule(), nullptr, poll);
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
};

// Feng & Huang 2018, algorithm 6, for any graph.

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
  DivisionTreeCheckpoints()
      : TwoEndPointsSolver(
            {"division_tree",
             "least memory where each segment lies between two checkpoints (Feng & Huang 2018)",
             "all sets whose segments read one checkpoint and are read by one"}) {}

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
  AcyclicQuotient()
      : CheckpointSolver(SegmentRule::kSeveralEndPoints,
                         {"acyclic_quotient",
                          "least memory found by search, where a segment may lie between any "
                          "number of checkpoints; proven on small and narrow graphs",
                          "all sets whose segments can run one after the other"}) {}

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
    const absl::StatusOr<CheckpointPathBound> bound = CheckpointPathBound::Create(graph, &poll);
    if (!bound.ok()) return bound.status();
    const absl::StatusOr<int64_t> least = bound->LeastObjective(&poll);
    if (!least.ok()) return least.status();
    CheckpointAnswer answer = {std::move(best), Bytes(*least), false};
    std::optional<CutOrder> order;
    if (graph.size() <= kMostVerticesOfSearch) {
      absl::StatusOr<std::optional<CutOrder>> made = MakeCutOrder(graph, &poll);
      if (!made.ok()) return made.status();
      order = *std::move(made);
    }
    if (order) {
      const CutSearch search(graph, *bound, *std::move(order));
      BandSearch bands(graph, *bound, search, &answer);
      const absl::Status status =
          bands.Run(kSearchWork + kSearchWorkPerVertex * graph.size(), &poll,
                    [&context](double share) { context.Report(share); });
      if (!status.ok()) return status;
    }
    answer.optimal = answer.set.objective() <= answer.lower_bound;
    return answer;
  }
};

}  // namespace

const CheckpointSolver& StoreAllCheckpointSolver() {
  static const auto* const kSolver = new StoreAllCheckpoints;
  return *kSolver;
}

const CheckpointSolver& LinearCheckpointSolver() {
  static const auto* const kSolver = new LinearGraphCheckpoints;
  return *kSolver;
}

const CheckpointSolver& ChenSqrtCheckpointSolver() {
  static const auto* const kSolver = new ChenSqrtCheckpoints;
  return *kSolver;
}

const CheckpointSolver& ChenGreedyCheckpointSolver() {
  static const auto* const kSolver = new ChenGreedyCheckpoints;
  return *kSolver;
}

const CheckpointSolver& RandomCheckpointSolver() {
  static const auto* const kSolver = new RandomCheckpoints;
  return *kSolver;
}

const CheckpointSolver& DivisionTreeSolver() {
  static const auto* const kSolver = new DivisionTreeCheckpoints;
  return *kSolver;
}

const CheckpointSolver& AcyclicQuotientSolver() {
  static const auto* const kSolver = new AcyclicQuotient;
  return *kSolver;
}

const std::vector<const CheckpointSolver*>& AllCheckpointSolvers() {
  static const auto* const kAll = new std::vector<const CheckpointSolver*>{
      &StoreAllCheckpointSolver(),    //
      &RandomCheckpointSolver(),      //
      &ChenSqrtCheckpointSolver(),    //
      &ChenGreedyCheckpointSolver(),  //
      &LinearCheckpointSolver(),      //
      &DivisionTreeSolver(),          //
      &AcyclicQuotientSolver(),
  };
  return *kAll;
}

}  // namespace stowage
