// What a plan computes of its instance once and no more: plain training's replay, and each lower bound.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "solvers/chain/solvers.h"
#include "solvers/graph/linearize.h"
#include "solvers/graph/solvers.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/internal/computing_observer.h"
#include "solvers/schedule/lower_bound.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_graph.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

std::string NameOf(const Problem& problem) {
  return std::visit([](const auto& kind) { return Describe(kind); }, problem);
}

// Counts by what is computed, not by which instance it is computed of, while it lives.
class Counts final : public ComputingObserver {
 public:
  Counts() { computing_observer = this; }
  ~Counts() override { computing_observer = nullptr; }

  void OnReplay(const Instance& instance, const Schedule& schedule) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (schedule == instance.store_all_schedule()) ++store_all_[NameOf(instance.problem())];
  }

  void OnBound(const Instance& instance, BoundKind kind, Bytes budget) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++bounds_[{NameOf(instance.problem()), kind, instance.link().has_value(), budget.value()}];
  }

  // Replays of plain training, by problem.
  const std::map<std::string, int>& store_all() const { return store_all_; }
  int bounds() const { return static_cast<int>(bounds_.size()); }
  // Of one problem, kind, link and budget.
  int MostOfABound() const {
    int most = 0;
    for (const auto& [bound, count] : bounds_) most = std::max(most, count);
    return most;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> store_all_;
  std::map<std::tuple<std::string, BoundKind, bool, int64_t>, int> bounds_;
};

void ExpectOnce(const Counts& counts, const Problem& problem) {
  const std::map<std::string, int> once = {{NameOf(problem), 1}};
  EXPECT_EQ(counts.store_all(), once);
  EXPECT_EQ(counts.MostOfABound(), 1);
}

std::vector<std::string> NamesFor(ProblemKind kind) {
  std::vector<std::string> names = {""};
  for (const Solver* solver : SolversOf(kind)) names.push_back(solver->info().name);
  return names;
}

TEST(ComputedOnce, ByEverySolverOfChains) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 4; ++i) {
    // Exactly to the byte, and by tables.
    const Chain chain = RandomChain(i < 2 ? 7 : 30, {1 << (i < 2 ? 8 : 24), 1000}, &rng);
    TransferModel link = RandomTransferModel(&rng);
    for (const bool linked : {false, true}) {
      for (const std::string& name : NamesFor(ProblemKind::kChain)) {
        for (const Budget& budget :
             {Budget(ShareOfStoreAll{0.6}), Budget(ShareOfStoreAll{1.0}), Budget(LeastBudget{})}) {
          SCOPED_TRACE(name + " on " + Describe(chain));
          const Instance instance(chain,
                                  linked ? std::optional<TransferModel>(link) : std::nullopt);
          PlanOptions options;
          options.solver = name;
          const Counts counts;
          const absl::StatusOr<Plan> plan = MakePlan(instance, budget, options);
          ASSERT_TRUE(plan.ok()) << plan.status();
          ExpectOnce(counts, chain);
        }
      }
    }
  }
}

// Searches cut graphs into chains, problems with plain trainings of their own; the graph's is replayed once.
TEST(ComputedOnce, ByEverySolverOfGraphs) {
  std::mt19937_64 rng(2);
  RandomGraphOptions drawn;
  drawn.vertices = 9;
  for (int i = 0; i < 3; ++i) {
    const Graph graph = RandomGraph(drawn, &rng);
    const TransferModel link = RandomTransferModel(&rng);
    for (const bool linked : {false, true}) {
      for (const std::string& name : NamesFor(ProblemKind::kGraph)) {
        SCOPED_TRACE(name + " on " + Describe(graph));
        const Instance instance(graph, linked ? std::optional<TransferModel>(link) : std::nullopt);
        PlanOptions options;
        options.solver = name;
        const Counts counts;
        ASSERT_TRUE(MakePlan(instance, ShareOfStoreAll{0.7}, options).ok());
        EXPECT_EQ(counts.store_all().at(NameOf(graph)), 1);
        EXPECT_GT(counts.bounds(), 0);
      }
    }
    const LinearizedSolver linearized(&OptimalPersistentSolver());
    const Counts counts;
    ASSERT_TRUE(linearized.SolveFrontier(graph, {}).ok());
    const std::map<std::string, int> each_once = {{NameOf(graph), 1},
                                                  {NameOf(Linearize(graph)->chain), 1}};
    EXPECT_EQ(counts.store_all(), each_once);
  }
}

// The bounds differ with the link: each has its own.
TEST(ComputedOnce, WhatIsRememberedIsWhatIsComputed) {
  std::mt19937_64 rng(3);
  for (int i = 0; i < 60; ++i) {
    const Chain chain = RandomChain(1 + i % 9, VariedOptions(i), &rng);
    const Instance plain(chain), remembering = plain.Remembering();
    const TransferModel links[] = {RandomTransferModel(&rng), RandomTransferModel(&rng)};
    for (int round = 0; round < 2; ++round) {
      for (const double share : {0.4, 0.7}) {
        const Bytes budget(
            static_cast<int64_t>(share * static_cast<double>(plain.store_all()->peak.value())));
        EXPECT_EQ(MakespanLowerBound(remembering, budget), MakespanLowerBound(plain, budget));
        EXPECT_EQ(StrongestMakespanLowerBound(remembering, budget),
                  StrongestMakespanLowerBound(plain, budget));
        for (const TransferModel& link : links) {
          EXPECT_EQ(MakespanLowerBound(remembering.WithLink(link), budget),
                    MakespanLowerBound(plain.WithLink(link), budget));
        }
      }
    }
  }
}

void ExpectSame(const Simulation& a, const Simulation& b) {
  EXPECT_EQ(a.makespan, b.makespan);
  EXPECT_EQ(a.peak, b.peak);
  EXPECT_EQ(a.recompute_time, b.recompute_time);
  EXPECT_EQ(a.idle_time, b.idle_time);
  EXPECT_EQ(a.recomputed_forwards, b.recomputed_forwards);
  EXPECT_EQ(a.peak_instruction, b.peak_instruction);
  EXPECT_EQ(a.host_peak, b.host_peak);
  EXPECT_EQ(a.offloaded, b.offloaded);
  EXPECT_EQ(a.prefetched, b.prefetched);
  EXPECT_EQ(a.communication_time, b.communication_time);
}

// A link changes nothing of plain training, so that one run serves all instances of a problem.
void ExpectTheSameRunWithAnyLink(const Problem& problem, const TransferModel& link) {
  const Instance replayed(problem, link);
  const Instance remembering = Instance(problem).Remembering().WithLink(link);
  const Schedule schedule = replayed.store_all_schedule();
  EXPECT_EQ(remembering.store_all_schedule(), schedule);
  std::vector<TimelinePoint> points, remembered;
  const absl::StatusOr<Simulation> run = Evaluator(replayed).Run(schedule, &points);
  const Counts counts;
  const absl::StatusOr<Simulation> recalled = Evaluator(remembering).Run(schedule, &remembered);
  ASSERT_EQ(run.ok(), recalled.ok());
  if (!run.ok()) return;
  EXPECT_TRUE(counts.store_all().empty());
  ExpectSame(*run, *recalled);
  ASSERT_EQ(points.size(), remembered.size());
  for (size_t i = 0; i < points.size(); ++i) {
    EXPECT_EQ(points[i].start, remembered[i].start);
    EXPECT_EQ(points[i].end, remembered[i].end);
    EXPECT_EQ(points[i].running, remembered[i].running);
    EXPECT_EQ(points[i].held, remembered[i].held);
    EXPECT_EQ(points[i].host, remembered[i].host);
  }
}

TEST(ComputedOnce, PlainTrainingIsTheSameWithAnyLink) {
  std::mt19937_64 rng(4);
  for (int i = 0; i < 200; ++i) {
    const TransferModel link = RandomTransferModel(&rng);
    ExpectTheSameRunWithAnyLink(RandomChain(1 + i % 9, VariedOptions(i), &rng), link);
    RandomGraphOptions options;
    options.vertices = 1 + i % 12;
    options.with_flags = i % 2 == 0;
    options.with_aliases = i % 3 == 0;
    ExpectTheSameRunWithAnyLink(RandomGraph(options, &rng), link);
  }
}

}  // namespace
}  // namespace stowage::testing
