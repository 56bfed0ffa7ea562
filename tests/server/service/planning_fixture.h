// A PlanningService with a solver and metrics that the test holds.
#ifndef STOWAGE_TESTS_SERVER_SERVICE_PLANNING_FIXTURE_H_
#define STOWAGE_TESTS_SERVER_SERVICE_PLANNING_FIXTURE_H_

#include <memory>
#include <optional>
#include <utility>

#include "server/service/planning_service.h"
#include "server/store/memory_plan_store.h"
#include "server/store/metrics_plan_store.h"
#include "tests/server/support/answers.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/fake_solver.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {

struct PlanningFixture {
  explicit PlanningFixture(bool held, const PlanningOptions& options = PlanningOptions())
      : solver(held),
        store(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)), CacheTier::kMemory, &metrics),
        service(std::make_unique<PlanningService>(options, &store, &solver, &metrics)) {}

  // Asks and waits.
  absl::StatusOr<ComputeAnswer> Compute(const Profile& profile, const Budget& budget,
                                        const KeyOptions& options = KeyOptions()) {
    const int index = next_index++;
    service->ComputePlan(ComputeRequest{profile, budget, options, std::nullopt}, answers.Of(index));
    return answers.WaitFor(index);
  }

  std::shared_ptr<PlanCall> Ask(
      int index, const Profile& profile, const Budget& budget,
      std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt) {
    return service->ComputePlan(ComputeRequest{profile, budget, KeyOptions(), deadline},
                                answers.Of(index));
  }

  int next_index = 1000;
  Answers answers;
  CountingMetrics metrics;
  FakeSolver solver;
  MetricsPlanStore store;
  std::unique_ptr<PlanningService> service;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SERVICE_PLANNING_FIXTURE_H_
