// Plans that are solved anew in the background, through the service: who asks for them gets the new ones.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/service/admin.h"
#include "tests/server/service/planning_fixture.h"
#include "tests/server/support/shared_lease.h"
#include "tests/server/support/versioned_solver.h"

namespace stowage::testing {
namespace {

// False after 10 s.
bool Comes(const std::function<bool()>& condition) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// As if another version had made all plans of the entry.
void MakeBy(const std::string& version, const PlanKey& key, PlanStore* store) {
  PlanEntry entry = *store->Get(key, Access::kPeek);
  for (StoredPlan& stored : entry.plans) {
    Plan plan = *stored.plan;
    plan.provenance.solver_version = version;
    stored.plan = std::make_shared<const Plan>(std::move(plan));
  }
  ++entry.generation;
  ASSERT_TRUE(store->Put(key, std::make_shared<const PlanEntry>(std::move(entry))).ok());
}

int64_t Resolves(const CountingMetrics& metrics, ResolveReason reason) {
  return metrics.resolves[static_cast<size_t>(reason)];
}

TEST(ReSolves, PlansThatAreAskedForByKeyAloneAreUpgraded) {
  const std::string path = ::testing::TempDir() + "stowage_re_solves_audit";
  AuditOptions audit;
  audit.path = path;
  auto log = *AuditLog::Open(audit);
  PlanningOptions options;
  options.audit = log.get();
  PlanningFixture fixture(false, options);
  const auto answer = fixture.Compute(ChainProfile({}), kTight);
  ASSERT_TRUE(answer.ok()) << answer.status();
  const PlanKey key = answer->key;
  MakeBy("0.0.9", key, &fixture.store);
  const auto version = [&] {
    return fixture.service->GetPlan({key}, kTight)->plan->provenance.solver_version;
  };
  EXPECT_EQ(version(), "0.0.9");
  EXPECT_TRUE(Comes([&] { return version() == kSolverVersion; }));
  EXPECT_EQ(Resolves(fixture.metrics, ResolveReason::kUpgrade), 1);
  EXPECT_EQ(fixture.solver.started(), 2);

  fixture.service.reset();
  log.reset();  // writes what it has
  std::ifstream file(path + ".changes");
  std::string line;
  EXPECT_TRUE(std::getline(file, line));
  const std::vector<std::string> parts = {"\"resolve\"", "\"source\":\"upgrade\"",
                                          "\"outcome\":\"serving\"", "\"revision\":1",
                                          key.digest.ToHex()};
  for (const std::string& part : parts) {
    EXPECT_NE(line.find(part), std::string::npos) << part << " in " << line;
  }
  EXPECT_FALSE(std::getline(file, line));
  for (const std::string end : {"", ".changes"}) std::remove((path + end).c_str());
}

// A library whose choice of a solver is another one.
class ChoosingSolver final : public PlanSolver {
 public:
  ChoosingSolver(std::string choice, const PlanSolver* solver)
      : choice_(std::move(choice)), solver_(solver) {}
  absl::StatusOr<Bytes> Resolve(const Instance& instance, const Budget& budget,
                                const PlanOptions& options) const override {
    return solver_->Resolve(instance, budget, options);
  }
  absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                             const PlanOptions& options) const override {
    PlanOptions chosen = options;
    chosen.solver = choice_;
    return solver_->Solve(instance, budget, chosen);
  }
  absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                         const PlanOptions& options) const override {
    return solver_->SolveFrontier(instance, options);
  }

 private:
  const std::string choice_;
  const PlanSolver* const solver_;
};

// One of several servers with one store.
struct Replica {
  Replica(const std::string& version, PlanStore* store, SolveLease* lease, bool held = false,
          const std::string& choice = "")
      : library(held),
        choosing(choice, &library),
        solver(version, &choosing),
        service(Options(version, lease), store, &solver, &metrics) {}

  static PlanningOptions Options(const std::string& version, SolveLease* lease) {
    PlanningOptions options;
    options.solver_version = version;
    options.lease = lease;
    return options;
  }
  PlanKey Compute() {
    service.ComputePlan(ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt},
                        answers.Of(0));
    const auto answer = answers.WaitFor(0);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->key : PlanKey();
  }
  void AskFrontier(int index) {
    service.GetFrontier(ComputeRequest{ChainProfile({}), kTight, KeyOptions(), std::nullopt},
                        answers.Of(index));
  }
  std::string VersionOf(const PlanKey& key) {
    return service.GetPlan({key}, kTight)->plan->provenance.solver_version;
  }
  int64_t upgrades() const { return Resolves(metrics, ResolveReason::kUpgrade); }

  Answers answers;
  CountingMetrics metrics;
  FakeSolver library;
  ChoosingSolver choosing;
  VersionedSolver solver;
  PlanningService service;
};

TEST(ReSolves, WhileAnUpgradeRollsTheOldServerTakesNothingBack) {
  MemoryPlanStore store(Bytes(64 << 20));
  SharedLease lease;
  Replica before("0.9.0", &store, &lease), after("0.10.0", &store, &lease);
  const PlanKey key = before.Compute();
  EXPECT_EQ(before.VersionOf(key), "0.9.0");
  EXPECT_EQ(after.VersionOf(key), "0.9.0");
  EXPECT_TRUE(Comes([&] { return after.VersionOf(key) == "0.10.0"; }));
  const int64_t generation = store.Get(key, Access::kPeek)->generation;
  EXPECT_EQ(before.VersionOf(key), "0.10.0");
  EXPECT_EQ(before.Compute(), key);
  // What was wished for would have been solved before this.
  EXPECT_TRUE(before.service.SubmitBackground(7, [](const StopToken&) {}));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(before.upgrades(), 0);
  EXPECT_EQ(after.upgrades(), 1);
  EXPECT_EQ(store.Get(key, Access::kPeek)->generation, generation);
}

TEST(ReSolves, OfSeveralServersOneUpgrades) {
  MemoryPlanStore store(Bytes(64 << 20));
  SharedLease lease;
  Replica first("0.10.0", &store, &lease, true), second("0.10.0", &store, &lease);
  const PlanKey key = Replica("0.9.0", &store, &lease).Compute();
  first.VersionOf(key);
  ASSERT_TRUE(first.library.WaitUntilStarted(1));
  // The second one's turn comes while the first one is at it.
  second.VersionOf(key);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(second.library.started(), 0);
  first.library.Release();
  EXPECT_TRUE(Comes([&] { return second.VersionOf(key) == "0.10.0"; }));
  EXPECT_EQ(first.upgrades() + second.upgrades(), 1);
}

TEST(ReSolves, TheUpgradeOfWhatIsPinnedIsTriedInShadowAndPromoted) {
  MemoryPlanStore store(Bytes(64 << 20));
  SharedLease lease;
  const PlanKey key = Replica("0.9.0", &store, &lease, false, "chen_sqrt").Compute();
  Replica after("0.10.0", &store, &lease);
  PlanAdmin admin(&store, &after.metrics, nullptr);
  const auto change = [&](int64_t revision, PinAction action) {
    return admin.Pin(AdminCaller(), key, RevisionId{kTight, revision}, action);
  };
  ASSERT_TRUE(change(1, PinAction::kPin).ok());
  EXPECT_EQ(after.VersionOf(key), "0.9.0");
  const auto entry = [&] { return store.Get(key, Access::kPeek); };
  ASSERT_TRUE(Comes([&] { return entry()->plans.size() == 2; }));
  EXPECT_EQ(entry()->plans[1].state, RevisionState::kShadow);
  EXPECT_LT(entry()->plans[1].plan->prediction.makespan,
            entry()->plans[0].plan->prediction.makespan);
  EXPECT_EQ(after.VersionOf(key), "0.9.0");
  ASSERT_TRUE(change(1, PinAction::kUnpin).ok());
  EXPECT_EQ(after.VersionOf(key), "0.9.0");
  ASSERT_TRUE(change(2, PinAction::kPromote).ok());
  EXPECT_EQ(after.VersionOf(key), "0.10.0");
  EXPECT_EQ(after.upgrades(), 1);
}

TEST(ReSolves, OfSeveralServersOneSolvesAFrontier) {
  MemoryPlanStore store(Bytes(64 << 20));
  SharedLease lease;
  Replica first("0.1.0", &store, &lease, true), second("0.1.0", &store, &lease);
  first.AskFrontier(0);
  ASSERT_TRUE(Comes([&] { return first.library.frontiers() == 1; }));
  second.AskFrontier(0);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  first.library.Release();
  const auto solved = first.answers.WaitFor(0), shared = second.answers.WaitFor(0);
  ASSERT_TRUE(solved.ok() && shared.ok()) << solved.status() << shared.status();
  EXPECT_EQ(solved->source, AnswerSource::kSolved);
  EXPECT_EQ(shared->source, AnswerSource::kCache);
  EXPECT_EQ(second.library.frontiers(), 0);
}

}  // namespace
}  // namespace stowage::testing
