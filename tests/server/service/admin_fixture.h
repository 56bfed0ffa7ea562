// The administration of what a store keeps, of several tenants.
#ifndef STOWAGE_TESTS_SERVER_SERVICE_ADMIN_FIXTURE_H_
#define STOWAGE_TESTS_SERVER_SERVICE_ADMIN_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "server/service/admin.h"
#include "server/store/memory_plan_store.h"
#include "tests/server/support/asked.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {

inline Asked Of(const std::string& tenant, int stages = 6) {
  ProfileShape shape;
  shape.stages = stages;
  KeyOptions options;
  options.tenant = tenant;
  return *MakePlanningProblem(ChainProfile(shape), options, Sha256);
}

inline AdminCaller From(const std::string& tenant) {
  return {"request-1", "somebody", tenant, false};
}

inline AdminCaller Everywhere() { return {"request-2", "root", "", true}; }

// Refuses changes as if others had been faster.
class ContestedStore final : public ForwardingStore {
 public:
  explicit ContestedStore(PlanStore* store) : ForwardingStore(Borrowed(store)) {}
  absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                       Durability durability) override {
    if (refusals-- > 0) return StaleGenerationError();
    return ForwardingStore::Replace(key, read, std::move(entry), durability);
  }

  int refusals = 0;
};

class PlanAdminTest : public ::testing::Test {
 protected:
  PlanKey Keep(const Asked& asked) {
    PlanEntry entry = EntryFor(asked, kJustShort, 1);
    entry.generation = 1;
    EXPECT_TRUE(store_.Put(asked->key, std::make_shared<const PlanEntry>(entry)).ok());
    return asked->key;
  }
  std::shared_ptr<const PlanEntry> At(const PlanKey& key) { return store_.Get(key, Access::kPeek); }

  ExecutionReport ReportOn(const PlanKey& key, const std::string& job) {
    const Plan& plan = *At(key)->plans[0].plan;
    ExecutionReport report;
    report.key = key;
    report.plan_digest = ScheduleDigest(plan.schedule);
    report.revision = plan.revision;
    report.budget = plan.budget;
    report.steps = 10;
    report.step_time = plan.prediction.makespan;
    report.peak = plan.prediction.peak;
    report.job = job;
    return report;
  }

  MemoryPlanStore memory_{Bytes(64 << 20)};
  ContestedStore store_{&memory_};
  CountingMetrics metrics_;
  PlanAdmin admin_{&store_, &metrics_, nullptr};
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SERVICE_ADMIN_FIXTURE_H_
