// Plans that are solved anew in the background, through the service: who asks for them gets the new ones.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/server/planning/planning_fixture.h"

namespace stowage::testing {
namespace {

constexpr Bytes kTight{1500};

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
  PlanningFixture fixture(false);
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
}

}  // namespace
}  // namespace stowage::testing
