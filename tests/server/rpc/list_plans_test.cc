// Lists of cached plans: what a filter takes, where pages go on, and what a list is of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/plan_filter.h"
#include "server/store/memory_plan_store.h"
#include "server/store/metrics_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/rpc/admin_calls.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;

v1::PlanSummary Summary() {
  v1::PlanSummary plan;
  plan.mutable_key()->set_digest(std::string(32, '\x3f'));
  plan.set_name("resnet50 \"v2\"");
  plan.set_tenant("vision");
  plan.set_solver("optimal_persistent");
  plan.set_budget_bytes(1500);
  plan.set_revision(3);
  plan.set_reports(2);
  plan.set_pinned(true);
  plan.set_state(v1::REVISION_STATE_SHADOW);
  plan.set_status(v1::PLAN_STATUS_FOUND);
  return plan;
}

TEST(PlanFilter, TakesWhatItsRestrictionsAllSay) {
  const std::pair<const char*, bool> cases[] = {
      {"", true},
      {"  ", true},
      {"name = resnet*", true},
      {"name=resnet", false},
      {"name : net50", true},
      {R"(name : "50 \"v")", true},
      {"name != resnet*", false},
      {"tenant = vision", true},
      {"tenant = \"\"", false},
      {"solver : persistent AND tenant != speech", true},
      {"key = 3F3f*", true},
      {"key = 3e*", false},
      {"pinned = true", true},
      {"pinned != true", false},
      {"frozen = false AND pinned = true", true},
      {"state = SHADOW", true},
      {"state = REVISION_STATE_SERVING", false},
      {"state != RETIRED", true},
      {"status = PLAN_STATUS_FOUND", true},
      {"budget_bytes >= 1500 AND budget_bytes <= 1500", true},
      {"budget_bytes > 1500", false},
      {"budget_bytes < 1501", true},
      {"revision = 3 AND reports != 2", false},
      {"reports = 2", true},
  };
  for (const auto& [text, takes] : cases) {
    const absl::StatusOr<PlanFilter> filter = PlanFilter::Parse(text);
    ASSERT_TRUE(filter.ok()) << text << filter.status();
    EXPECT_EQ(filter->Takes(Summary()), takes) << text;
  }
}

TEST(PlanFilter, WhatIsNoFilterIsRefusedWithThePlace) {
  const std::pair<std::string, const char*> cases[] = {
      {"colour = red", "at byte 0"},
      {"name", "at byte 4"},
      {"name =", "at byte 6"},
      {"name = \"open", "at byte 7"},
      {"name ? x", "at byte 5"},
      {"name = x OR name = y", "at byte 9"},
      {"name = x AND", "at byte 12"},
      {"pinned = yes", "at byte 0"},
      {"pinned : true", "at byte 0"},
      {"state = BUSY", "at byte 0"},
      {"budget_bytes = many", "at byte 0"},
      {"name > x", "at byte 0"},
      {"= x", "at byte 0"},
      {std::string(1025, ' '), "must have at most 1024 bytes"},
  };
  for (const auto& [text, why] : cases) {
    const absl::Status status = PlanFilter::Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(GetFieldViolation(status)->field, "filter");
    EXPECT_THAT(GetFieldViolation(status)->rule, HasSubstr(why)) << text;
  }
}

class ListPlansTest : public ::testing::Test {
 protected:
  // Plans of networks of 3 to 8 stages, each for two budgets.
  ListPlansTest() {
    for (int stages = 3; stages < 9; ++stages) {
      ProfileShape shape;
      shape.stages = stages;
      Profile profile = ChainProfile(shape);
      profile.name = absl::StrCat("net", stages);
      for (const Bytes budget : {LeastPeak(profile), StoreAllPeak(profile)}) {
        v1::ComputePlanResponse response;
        EXPECT_TRUE(fixture_.Compute(ComputeRequestFor(profile, budget.value()), &response).ok());
        keys_.insert(absl::BytesToHexString(response.key().digest()));
      }
    }
  }

  // All pages: "name budget" of every plan.
  std::vector<std::string> All(v1::ListPlansRequest request) {
    std::vector<std::string> all;
    do {
      const auto page = calls_.List(request);
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) break;
      for (const auto& plan : page->plans()) {
        all.push_back(absl::StrCat(plan.name(), " ", plan.budget_bytes()));
      }
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty());
    return all;
  }

  RpcFixture fixture_;
  AdminCalls calls_{fixture_.channel};
  std::set<std::string> keys_;
};

TEST_F(ListPlansTest, PagesOfAnySizeHaveTheSamePlansInTheSameOrder) {
  const std::vector<std::string> whole = All({});
  EXPECT_EQ(std::set<std::string>(whole.begin(), whole.end()).size(), whole.size());
  ASSERT_GE(whole.size(), keys_.size());
  for (const char* filter : {"", "name != net5", "budget_bytes > 2000"}) {
    v1::ListPlansRequest request;
    request.set_filter(filter);
    const std::vector<std::string> expected = All(request);
    for (const int size : {1, 2, 3, 5, 100}) {
      request.set_page_size(size);
      EXPECT_EQ(All(request), expected) << filter << " " << size;
    }
  }
}

TEST_F(ListPlansTest, AFilterIsTheServers) {
  v1::ListPlansRequest request;
  request.set_filter("name = net5");
  for (const std::string& plan : All(request)) EXPECT_THAT(plan, HasSubstr("net5 "));
  EXPECT_FALSE(All(request).empty());
  request.set_filter(absl::StrCat("key = ", keys_.begin()->substr(0, 20), "*"));
  const size_t of_one = All(request).size();
  EXPECT_GE(of_one, 1u);
  EXPECT_LE(of_one, 2u);
  request.set_filter("pinned = true");
  EXPECT_TRUE(All(request).empty());
  request.set_filter("name = ");
  EXPECT_EQ(GetFieldViolation(calls_.List(request).status())->field, "filter");
}

TEST_F(ListPlansTest, ATokenIsOfOneFilterAndKey) {
  v1::ListPlansRequest request;
  request.set_page_size(1);
  request.set_filter("pinned = false");
  request.set_page_token(calls_.List(request)->next_page_token());
  ASSERT_NE(request.page_token(), "");
  EXPECT_TRUE(calls_.List(request).ok());
  request.set_page_size(7);
  EXPECT_TRUE(calls_.List(request).ok());
  v1::ListPlansRequest other = request;
  other.set_filter("frozen = false");
  EXPECT_EQ(GetFieldViolation(calls_.List(other).status())->field, "page_token");
  other = request;
  other.mutable_key()->set_encoding_version(kEncodingVersion);
  other.mutable_key()->set_digest(absl::HexStringToBytes(*keys_.begin()));
  EXPECT_EQ(GetFieldViolation(calls_.List(other).status())->field, "page_token");
}

TEST_F(ListPlansTest, TheRevisionsOfOneKeyHavePages) {
  v1::ListPlansRequest request;
  request.mutable_key()->set_encoding_version(kEncodingVersion);
  size_t most = 0;
  for (const std::string& key : keys_) {
    request.mutable_key()->set_digest(absl::HexStringToBytes(key));
    request.clear_page_size();
    const std::vector<std::string> whole = All(request);
    most = std::max(most, whole.size());
    request.set_page_size(1);
    EXPECT_EQ(All(request), whole);
  }
  EXPECT_EQ(most, 2u);
}

int64_t SecondsNow() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

// The changes have nothing in common but the generation that each of them makes.
TEST_F(ListPlansTest, APlanSaysWhenItsEntryLastChanged) {
  const int64_t begun = SecondsNow();
  v1::ComputePlanResponse answer;
  ASSERT_TRUE(fixture_.Compute(ComputeRequestFor(ChainProfile({}), 1500), &answer).ok());
  const PlanKey key = *FromProto(answer.key());
  const auto listed = [&] { return calls_.List(answer.key())->plans(0); };
  const auto expect_changed_now = [&](const char* what) {
    const v1::PlanSummary plan = listed();
    ASSERT_TRUE(plan.has_update_time()) << what;
    EXPECT_GE(plan.update_time().seconds(), begun) << what;
    EXPECT_LE(plan.update_time().seconds(), SecondsNow()) << what;
    EXPECT_GE(plan.update_time().seconds(), plan.create_time().seconds()) << what;
  };
  // As if the entry had last changed then, or nobody knew when.
  const auto set = [&](std::optional<int64_t> updated_s) {
    PlanEntry entry = *fixture_.store.Get(key, Access::kUpdate);
    ++entry.generation;
    entry.updated_s = updated_s;
    EXPECT_TRUE(fixture_.store.Put(key, std::make_shared<const PlanEntry>(entry)).ok());
  };
  expect_changed_now("solved");
  set(std::nullopt);
  EXPECT_FALSE(listed().has_update_time());
  set(1000);
  EXPECT_EQ(listed().update_time().seconds(), 1000);
  v1::GetPlanRequest get;
  *get.add_keys() = answer.key();
  get.mutable_budget()->set_bytes(1500);
  ASSERT_TRUE(calls_.Get(get).ok());
  EXPECT_EQ(listed().update_time().seconds(), 1000) << "nothing has changed";
  ASSERT_TRUE(calls_.Report(ReportRequest(answer.plan(), answer.key(), "job")).ok());
  expect_changed_now("reported");
  set(1000);
  ASSERT_TRUE(calls_.Pin(PinRequest(listed())).ok());
  expect_changed_now("pinned");
  set(1000);
  v1::FreezePlanRequest freeze;
  *freeze.mutable_key() = answer.key();
  ASSERT_TRUE(calls_.Freeze(freeze).ok());
  expect_changed_now("frozen");
}

class StoreThatCannotList final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>&, size_t) override {
    return absl::UnavailableError("away");
  }
};

class CountedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  PlanAnswer Look(const PlanKey& key, Access access) override {
    if (access == Access::kInspect) ++inspections;
    return ForwardingStore::Look(key, access);
  }

  std::atomic<int> inspections{0};
};

TEST(ListPlans, APageReadsHardlyMoreEntriesThanItHasPlansOf) {
  auto counted = std::make_unique<CountedStore>(std::make_shared<MemoryPlanStore>(Bytes(64 << 20)));
  CountedStore* const store = counted.get();
  RpcFixture fixture(false, RequestLimits(), PlanningOptions(), std::move(counted));
  AdminCalls calls(fixture.channel);
  v1::ComputePlanResponse response;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), 1500), &response).ok());
  const auto entry = store->Get(*FromProto(response.key()), Access::kPeek);
  ASSERT_NE(entry, nullptr);
  for (int i = 0; i < 99; ++i) {
    ASSERT_TRUE(store->Put({kEncodingVersion, Sha256(absl::StrCat(i))}, entry).ok());
  }
  v1::ListPlansRequest request;
  request.set_page_size(1);
  request.set_filter("budget_bytes = 1500");
  std::set<std::string> seen;
  for (int page = 0; page < 3; ++page) {
    store->inspections = 0;
    const auto listed = calls.List(request);
    ASSERT_TRUE(listed.ok()) << listed.status();
    ASSERT_EQ(listed->plans_size(), 1);
    seen.insert(listed->plans(0).key().digest());
    EXPECT_LE(store->inspections, 34);
    request.set_page_token(listed->next_page_token());
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(ListPlans, WhatCanBeListedIsListedWhereThatIsAskedForAndTheStoreNamed) {
  NoMetrics metrics;
  auto shared = std::make_unique<MetricsPlanStore>(
      std::make_unique<StoreThatCannotList>(std::make_shared<MemoryPlanStore>(Bytes(1 << 20))),
      CacheTier::kRedis, &metrics);
  RpcFixture fixture(
      false, RequestLimits(), PlanningOptions(),
      std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(Bytes(1 << 20)),
                                        std::move(shared), std::nullopt));
  AdminCalls calls(fixture.channel);
  v1::ComputePlanResponse response;
  ASSERT_TRUE(fixture.Compute(ComputeRequestFor(ChainProfile({}), 1500), &response).ok());
  const absl::Status status = calls.List().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(GetReason(status), "STORE_UNAVAILABLE");
  v1::ListPlansRequest request;
  request.set_return_partial_success(true);
  const auto partial = calls.List(request);
  ASSERT_TRUE(partial.ok()) << partial.status();
  EXPECT_EQ(partial->plans_size(), 1);
  EXPECT_THAT(partial->unreachable(), ::testing::ElementsAre("redis"));
}

}  // namespace
}  // namespace stowage::testing
