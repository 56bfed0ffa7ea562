// Cached plans are listed, pinned, deleted, explained and reported on, over a real server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <numeric>
#include <set>
#include <thread>

#include "tests/server/rpc/admin_calls.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;

Profile ProfileOf(int stages) {
  ProfileShape shape;
  shape.stages = stages;
  return ChainProfile(shape);
}

v1::PlanKey UnknownKey() {
  v1::PlanKey key;
  key.set_encoding_version(kEncodingVersion);
  key.set_digest(std::string(32, 'u'));
  return key;
}

class AdminRpcTest : public ::testing::Test {
 protected:
  v1::ComputePlanResponse Compute(int stages = 6) {
    v1::ComputePlanResponse response;
    EXPECT_TRUE(
        fixture_.Compute(ComputeRequestFor(ProfileOf(stages), kTightBytes), &response).ok());
    return response;
  }
  absl::StatusOr<v1::GetPlanResponse> Get(const v1::PlanKey& key) {
    v1::GetPlanRequest request;
    *request.add_keys() = key;
    request.mutable_budget()->set_bytes(kTightBytes);
    return calls_.Get(request);
  }
  int64_t ServedRevision(const v1::PlanKey& key) {
    const auto served = Get(key);
    return served.ok() ? served->plan().revision() : 0;
  }
  absl::Status Pin(const v1::PlanSummary& plan) { return calls_.Pin(PinRequest(plan)); }
  absl::Status Unpin(const v1::PlanSummary& plan) {
    return calls_.Unpin(RevisionRequest<v1::UnpinPlanRequest>(plan));
  }
  absl::Status RollBack(const v1::PlanSummary& plan) {
    return calls_.RollBack(RevisionRequest<v1::RollBackPlanRequest>(plan));
  }
  absl::Status Promote(const v1::PlanSummary& plan) {
    return calls_.Promote(RevisionRequest<v1::PromotePlanRequest>(plan));
  }
  // Another revision of the key's only plan, as a re-solve would leave it.
  void AddRevision(const v1::PlanKey& key, RevisionState state) {
    const PlanKey native = *FromProto(key);
    PlanEntry entry = *fixture_.store.Get(native, Access::kUpdate);
    Plan plan = *entry.plans.back().plan;
    ++plan.revision;
    entry.plans.push_back({std::make_shared<const Plan>(plan), state});
    ++entry.generation;
    EXPECT_TRUE(fixture_.store.Put(native, std::make_shared<const PlanEntry>(entry)).ok());
  }
  v1::PlanSummary Listed(const v1::PlanKey& key, int index) {
    return calls_.List(key)->plans(index);
  }

  RpcFixture fixture_;
  AdminCalls calls_{fixture_.channel};
};

void ExpectField(const absl::Status& status, const std::string& field) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  const auto violation = GetFieldViolation(status);
  EXPECT_EQ(violation ? violation->field : "none", field) << status;
}

void ExpectState(const absl::Status& status) {
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_EQ(GetReason(status), "REVISION_STATE");
}

void ExpectUnknown(const absl::Status& status) {
  EXPECT_TRUE(absl::IsNotFound(status)) << status;
  EXPECT_EQ(GetReason(status), kReasonPlanNotCached);
}

TEST_F(AdminRpcTest, AListedPlanIsWhatWasHandedOut) {
  const v1::ComputePlanResponse answer = Compute();
  const auto page = calls_.List();
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->plans_size(), 1);
  EXPECT_EQ(page->next_page_token(), "");
  const v1::PlanSummary& plan = page->plans(0);
  EXPECT_EQ(plan.key().digest(), answer.key().digest());
  EXPECT_EQ(plan.name(), ProfileOf(6).name);
  EXPECT_EQ(plan.budget_bytes(), kTightBytes);
  EXPECT_EQ(plan.makespan_ns(), answer.plan().prediction().makespan_ns());
  EXPECT_EQ(plan.peak_bytes(), answer.plan().prediction().peak_bytes());
  EXPECT_EQ(plan.revision(), 1);
  EXPECT_EQ(plan.state(), v1::REVISION_STATE_SERVING);
  EXPECT_EQ(plan.status(), v1::PLAN_STATUS_FOUND);
  EXPECT_EQ(plan.solver(), answer.plan().provenance().solver());
  EXPECT_FALSE(plan.pinned() || plan.frozen());
  EXPECT_EQ(plan.reports(), 0);
  EXPECT_EQ(plan.tenant(), "");
  const auto entry = fixture_.store.Get(*FromProto(plan.key()), Access::kInspect);
  EXPECT_EQ(plan.create_time().seconds(), BegunAt(entry->generation));
  EXPECT_GT(plan.create_time().seconds(), 0);
  EXPECT_FALSE(BegunAt(5 * kChangesPerHistory).has_value()) << "of a version before";
}

TEST_F(AdminRpcTest, PagesHoldEveryRevisionOnceInOrder) {
  std::set<std::string> keys;
  for (int stages = 5; stages < 12; ++stages) {
    const v1::PlanKey key = Compute(stages).key();
    keys.insert(key.digest());
    AddRevision(key, RevisionState::kShadow);
  }
  for (const int size : {1, 3, 7, 1000}) {
    std::multiset<std::string> seen;
    std::pair<std::string, int64_t> last;
    v1::ListPlansRequest request;
    request.set_page_size(size);
    int pages = 0;
    do {
      const auto page = calls_.List(request);
      ASSERT_TRUE(page.ok()) << page.status();
      EXPECT_LE(page->plans_size(), size);
      EXPECT_TRUE(page->plans_size() == size || page->next_page_token().empty());
      for (const auto& plan : page->plans()) {
        seen.insert(plan.key().digest());
        const auto place = std::make_pair(plan.key().digest(), plan.revision());
        EXPECT_LT(last, place);
        last = place;
      }
      request.set_page_token(page->next_page_token());
    } while (!request.page_token().empty() && ++pages < 20);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()), keys);
    EXPECT_EQ(seen.size(), 2 * keys.size()) << size;
  }
}

TEST(AdminRpc, APageIsNoLargerThanAMessage) {
  RequestLimits limits;
  limits.max_message_bytes = 2000;
  RpcFixture fixture(false, limits);
  AdminCalls calls(fixture.channel);
  std::set<std::string> keys;
  for (int output = 1; output <= 60; ++output) {
    ProfileShape shape;
    shape.stages = 3;
    shape.output = output;
    const Profile profile = ChainProfile(shape);
    v1::ComputePlanResponse response;
    ASSERT_TRUE(
        fixture.Compute(ComputeRequestFor(profile, StoreAllPeak(profile).value()), &response).ok());
    keys.insert(response.key().digest());
  }
  ASSERT_EQ(keys.size(), 60u);
  std::set<std::string> seen;
  v1::ListPlansRequest request;
  int pages = 0;
  do {
    const auto page = calls.List(request);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->ByteSizeLong(), 2000u);
    for (const auto& plan : page->plans()) EXPECT_TRUE(seen.insert(plan.key().digest()).second);
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty() && ++pages < 40);
  EXPECT_GT(pages, 0);
  EXPECT_EQ(seen, keys);
}

TEST_F(AdminRpcTest, BadPagesNameTheField) {
  v1::ListPlansRequest request;
  for (const int size : {-1, 1001}) {
    request.set_page_size(size);
    ExpectField(calls_.List(request).status(), "page_size");
  }
  request.clear_page_size();
  for (int stages = 5; stages < 8; ++stages) Compute(stages);
  request.set_page_size(1);
  const std::string given = calls_.List(request)->next_page_token();
  std::string changed = given;
  changed[5] = changed[5] == 'A' ? 'B' : 'A';
  for (const std::string& token : {std::string("x"), std::string(72, '0'), std::string(59, 'A'),
                                   given.substr(1), given + given, changed}) {
    request.set_page_token(token);
    ExpectField(calls_.List(request).status(), "page_token");
  }
  request.set_page_token(given);
  EXPECT_TRUE(calls_.List(request).ok());
  v1::PlanKey key = UnknownKey();
  EXPECT_EQ(calls_.List(key)->plans_size(), 0);
  key.set_digest("short");
  ExpectField(calls_.List(key).status(), "key.digest");
}

TEST_F(AdminRpcTest, APinnedRevisionIsHandedOutUntilItIsUnpinned) {
  const v1::PlanKey key = Compute().key();
  AddRevision(key, RevisionState::kServing);
  ASSERT_EQ(ServedRevision(key), 2);
  const v1::PlanSummary first = Listed(key, 0);
  EXPECT_TRUE(Pin(first).ok());
  EXPECT_EQ(ServedRevision(key), 1);
  EXPECT_TRUE(Listed(key, 0).pinned());
  EXPECT_TRUE(Unpin(first).ok());
  EXPECT_EQ(ServedRevision(key), 2);
  ExpectState(Unpin(first));
}

TEST_F(AdminRpcTest, OneRolledBackIsNeverHandedOutAgain) {
  const v1::PlanKey key = Compute().key();
  AddRevision(key, RevisionState::kServing);
  const v1::PlanSummary second = Listed(key, 1);
  EXPECT_TRUE(RollBack(second).ok());
  EXPECT_EQ(ServedRevision(key), 1);
  EXPECT_EQ(Compute().plan().revision(), 1);
  EXPECT_EQ(Listed(key, 1).state(), v1::REVISION_STATE_RETIRED);
  for (const absl::Status& status : {Pin(second), Promote(second), RollBack(second)}) {
    ExpectState(status);
  }
}

TEST_F(AdminRpcTest, OneInShadowIsHandedOutOnceItIsPromoted) {
  const v1::PlanKey key = Compute().key();
  AddRevision(key, RevisionState::kShadow);
  EXPECT_EQ(ServedRevision(key), 1);
  EXPECT_EQ(Listed(key, 1).state(), v1::REVISION_STATE_SHADOW);
  EXPECT_TRUE(Promote(Listed(key, 1)).ok());
  EXPECT_EQ(ServedRevision(key), 2);
  EXPECT_EQ(Listed(key, 0).state(), v1::REVISION_STATE_SHADOW);
}

TEST_F(AdminRpcTest, AFrozenEntryTakesNoNewPlans) {
  const v1::PlanKey key = Compute().key();
  v1::FreezePlanRequest freeze;
  *freeze.mutable_key() = key;
  EXPECT_TRUE(calls_.Freeze(freeze).ok());
  ExpectState(calls_.Freeze(freeze));
  v1::ComputePlanResponse other;
  const auto ask = ComputeRequestFor(ProfileOf(6), kTightBytes + 100000);
  ASSERT_TRUE(fixture_.Compute(ask, &other).ok());
  EXPECT_EQ(calls_.List(key)->plans_size(), 1);
  EXPECT_TRUE(Listed(key, 0).frozen());
  EXPECT_EQ(ServedRevision(key), 1);
  v1::UnfreezePlanRequest unfreeze;
  *unfreeze.mutable_key() = key;
  EXPECT_TRUE(calls_.Unfreeze(unfreeze).ok());
  ASSERT_TRUE(fixture_.Compute(ask, &other).ok());
  EXPECT_EQ(calls_.List(key)->plans_size(), 2);
}

TEST_F(AdminRpcTest, BadPinsNameTheField) {
  const v1::PlanSummary plan = Listed(Compute().key(), 0);
  const v1::PinPlanRequest good = PinRequest(plan);
  v1::PinPlanRequest request = good;
  for (const std::string& id : {std::string("two words"), std::string(65, 'i')}) {
    request.set_request_id(id);
    ExpectField(calls_.Pin(request), "request_id");
  }
  request = good;
  request.set_budget_bytes(-1);
  ExpectField(calls_.Pin(request), "budget_bytes");
  request = good;
  request.set_revision(0);
  ExpectField(calls_.Pin(request), "revision");
  request = good;
  request.clear_key();
  ExpectField(calls_.Pin(request), "key.encoding_version");
  request = good;
  request.set_revision(9);
  ExpectUnknown(calls_.Pin(request));
  request = good;
  *request.mutable_key() = UnknownKey();
  ExpectUnknown(calls_.Pin(request));
  EXPECT_FALSE(Listed(plan.key(), 0).pinned());
}

TEST_F(AdminRpcTest, ADeletedKeyIsUnknown) {
  const v1::PlanKey key = Compute().key();
  EXPECT_TRUE(calls_.Delete(key)->deleted());
  EXPECT_FALSE(calls_.Delete(key)->deleted());
  ExpectUnknown(Get(key).status());
  ExpectField(calls_.Delete(v1::PlanKey()).status(), "key.encoding_version");
}

TEST_F(AdminRpcTest, ExplainsWhatAnswersTheBudget) {
  const v1::ComputePlanResponse answer = Compute();
  const auto text = calls_.Explain(ExplainRequest(answer.key(), kTightBytes));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(text->explanation(), HasSubstr(answer.plan().provenance().solver()));
  EXPECT_THAT(text->explanation(), HasSubstr("revision 1"));
  ExpectUnknown(calls_.Explain(ExplainRequest(answer.key(), 1)).status());
  ExpectUnknown(calls_.Explain(ExplainRequest(UnknownKey(), kTightBytes)).status());
  ExpectField(calls_.Explain(ExplainRequest(answer.key(), -1)).status(), "budget.bytes");
  ExpectField(calls_.Explain(ExplainRequest(v1::PlanKey(), kTightBytes)).status(),
              "key.encoding_version");
}

TEST_F(AdminRpcTest, ACancelledCallEndsOnceAndTheServerIsAsItWas) {
  const v1::PlanKey key = Compute().key();
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  const auto lane = static_cast<size_t>(Lane::kAdministration);
  for (int i = 0; i < PlanningOptions().intake.threads[lane]; ++i) {
    ASSERT_TRUE(fixture_.service
                    .Defer(Lane::kAdministration, Account(),
                           [released](const absl::Status&) { released.wait(); })
                    .ok());
  }
  grpc::ClientContext context;
  auto call = std::async(std::launch::async, [&] {
    v1::ExplainPlanResponse response;
    return fixture_.stub->ExplainPlan(&context, ExplainRequest(key, kTightBytes), &response);
  });
  const auto wait_until = [](const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return done();
  };
  ASSERT_TRUE(wait_until([&] { return fixture_.metrics.rpcs_started == 2; }));
  context.TryCancel();
  EXPECT_EQ(call.get().error_code(), grpc::CANCELLED);
  release.set_value();
  EXPECT_TRUE(calls_.Explain(ExplainRequest(key, kTightBytes)).ok());
  EXPECT_TRUE(wait_until([&] {
    const auto& handled = fixture_.metrics.rpcs_handled;
    return std::accumulate(handled.begin(), handled.end(), int64_t{0}) == 3;
  }));
}

TEST_F(AdminRpcTest, AServerThatGoesAwaySaysSo) {
  fixture_.service.Stop();
  const absl::Status status = calls_.List().status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(GetReason(status), "DRAINING");
}

}  // namespace
}  // namespace stowage::testing
