// Changes of cached plans that are asked for more than once, or of plans that others have changed: over a real
// server, and by the client that tries again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/rpc/grpc_connection.h"
#include "client/rpc/mock_plan_connection.h"
#include "client/rpc/retrying_connection.h"
#include "server/rpc/change_ledger.h"
#include "tests/server/rpc/admin_calls.h"

namespace stowage::testing {
namespace {

using ::testing::NiceMock;

class AdminChangesTest : public ::testing::Test {
 protected:
  AdminChangesTest() {
    v1::ComputePlanResponse response;
    EXPECT_TRUE(fixture_.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &response).ok());
    key_ = response.key();
  }
  v1::PlanSummary Listed() { return calls_.List(key_)->plans(0); }
  int64_t Generation() {
    const auto entry = fixture_.store.Get(*FromProto(key_), Access::kInspect);
    return entry ? entry->generation : 0;
  }

  RpcFixture fixture_;
  AdminCalls calls_{fixture_.channel};
  v1::PlanKey key_;
};

TEST_F(AdminChangesTest, AnOldEtagIsAbortedAndSaysTheOneThatHolds) {
  const v1::PlanSummary before = Listed();
  v1::PinPlanRequest pin = PinRequest(before);
  pin.set_etag(before.etag());
  ASSERT_TRUE(calls_.Pin(pin).ok());
  const v1::PlanSummary after = Listed();
  EXPECT_NE(after.etag(), before.etag());
  const int64_t generation = Generation();

  v1::UnpinPlanRequest unpin = RevisionRequest<v1::UnpinPlanRequest>(before);
  unpin.set_etag(before.etag());
  v1::FreezePlanRequest freeze;
  *freeze.mutable_key() = key_;
  freeze.set_etag(before.etag());
  v1::DeletePlanRequest remove;
  *remove.mutable_key() = key_;
  remove.set_etag(before.etag());
  for (const absl::Status& status :
       {calls_.Unpin(unpin), calls_.Freeze(freeze), calls_.Delete(remove).status()}) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_EQ(GetReason(status), kReasonEtagMismatch);
    EXPECT_EQ(GetErrorMetadata(status)["etag"], after.etag());
  }
  EXPECT_EQ(Generation(), generation);
  unpin.set_etag(after.etag());
  EXPECT_TRUE(calls_.Unpin(unpin).ok());
  remove.set_etag(Listed().etag());
  EXPECT_TRUE(calls_.Delete(remove)->deleted());
}

TEST_F(AdminChangesTest, AReportChangesNoEtag) {
  v1::GetPlanRequest get;
  *get.add_keys() = key_;
  get.mutable_budget()->set_bytes(kTightBytes);
  const auto plan = calls_.Get(get);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const std::string etag = Listed().etag();
  ASSERT_TRUE(calls_.Report(ReportRequest(plan->plan(), key_, "a job")).ok());
  EXPECT_EQ(Listed().reports(), 1);
  EXPECT_EQ(Listed().etag(), etag);
}

TEST_F(AdminChangesTest, ARequestThatComesTwiceIsCarriedOutOnce) {
  v1::PinPlanRequest pin = PinRequest(Listed());
  ASSERT_TRUE(calls_.Pin(pin).ok());
  v1::UnpinPlanRequest unpin = RevisionRequest<v1::UnpinPlanRequest>(Listed());
  unpin.set_etag(Listed().etag());
  unpin.set_request_id("a8f3");
  ASSERT_TRUE(calls_.Unpin(unpin).ok());
  const int64_t generation = Generation();
  EXPECT_TRUE(calls_.Unpin(unpin).ok());
  EXPECT_EQ(Generation(), generation);
  ASSERT_TRUE(calls_.Pin(pin).ok());  // somebody else
  EXPECT_TRUE(calls_.Unpin(unpin).ok());
  EXPECT_TRUE(Listed().pinned()) << "what was decided later is undone";

  v1::DeletePlanRequest remove;
  *remove.mutable_key() = key_;
  remove.set_request_id("a8f3");
  const absl::Status reused = calls_.Delete(remove).status();
  EXPECT_EQ(GetFieldViolation(reused)->field, "request_id");
  remove.set_request_id("a8f4");
  EXPECT_TRUE(calls_.Delete(remove)->deleted());
  EXPECT_TRUE(calls_.Delete(remove)->deleted()) << "as it was answered the first time";
  remove.clear_request_id();
  EXPECT_FALSE(calls_.Delete(remove)->deleted());
}

TEST_F(AdminChangesTest, WhatWasRefusedMayBeAskedForAgainUnderItsId) {
  v1::UnpinPlanRequest unpin = RevisionRequest<v1::UnpinPlanRequest>(Listed());
  unpin.set_request_id("b1");
  EXPECT_TRUE(absl::IsFailedPrecondition(calls_.Unpin(unpin)));
  ASSERT_TRUE(calls_.Pin(PinRequest(Listed())).ok());
  EXPECT_TRUE(calls_.Unpin(unpin).ok());
  EXPECT_FALSE(Listed().pinned());
}

// The server does what it is asked for; its answers to the first two attempts are lost.
TEST_F(AdminChangesTest, TheClientTriesAgainWhereAnswersAreLostAndTheChangeIsMadeOnce) {
  GrpcOptions options;
  options.address = fixture_.server->address();
  const std::unique_ptr<PlanConnection> direct = MakeGrpcConnection(options);
  auto lossy = std::make_unique<NiceMock<MockPlanConnection>>();
  int asked = 0;
  const auto lost = [&asked] { return ++asked % 3 != 0; };
  ON_CALL(*lossy, ChangePlan)
      .WillByDefault([&](const PlanRevision& revision, RevisionAction action,
                         const ChangeTerms& terms, const CallOptions& call) {
        const absl::Status status = direct->ChangePlan(revision, action, terms, call);
        return lost() ? absl::UnavailableError("connection reset") : status;
      });
  ON_CALL(*lossy, DeletePlan)
      .WillByDefault([&](const PlanKey& key, const ChangeTerms& terms, const CallOptions& call) {
        const absl::StatusOr<bool> deleted = direct->DeletePlan(key, terms, call);
        return lost() ? absl::UnavailableError("connection reset") : deleted;
      });
  RetryEnvironment environment = RetryEnvironment::Real();
  environment.sleep = [](std::chrono::nanoseconds, const CancelToken*) {};
  const auto connection = MakeRetryingConnection(std::move(lossy), {}, environment);

  const CallOptions call = CallOptions::Within(std::chrono::seconds(60));
  const PlanKey key = *FromProto(key_);
  const PlanRevision revision{key, Bytes(kTightBytes), 1};
  for (const RevisionAction action : {RevisionAction::kPin, RevisionAction::kUnpin,
                                      RevisionAction::kFreeze, RevisionAction::kUnfreeze}) {
    const int64_t generation = Generation();
    const absl::Status status =
        connection->ChangePlan(revision, action, {Listed().etag(), ""}, call);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(Generation(), generation + 1);
  }
  EXPECT_EQ(asked, 12);
  EXPECT_TRUE(*connection->DeletePlan(key, {Listed().etag(), ""}, call));
  EXPECT_EQ(asked, 15);
  EXPECT_EQ(Generation(), 0);
}

TEST(ChangeLedger, OneOfManyAtOnceMakesTheChangeAndTheOthersWaitForIt) {
  ChangeLedger ledger(8);
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> made{0};
  std::vector<std::future<absl::StatusOr<bool>>> calls;
  for (int i = 0; i < 4; ++i) {
    calls.push_back(std::async(std::launch::async, [&] {
      return ledger.Once("me", "id", "change", [&]() -> absl::StatusOr<bool> {
        released.wait();
        ++made;
        return false;
      });
    }));
  }
  release.set_value();
  for (auto& call : calls) {
    const absl::StatusOr<bool> said = call.get();
    EXPECT_TRUE(said.ok() && !*said);
  }
  EXPECT_EQ(made, 1);
}

TEST(ChangeLedger, RemembersTheLatestOfEachCaller) {
  ChangeLedger ledger(2);
  int made = 0;
  const auto make = [&]() -> absl::StatusOr<bool> { return ++made > 0; };
  const auto once = [&](const char* caller, const char* id) {
    return ledger.Once(caller, id, "change", make).ok();
  };
  EXPECT_TRUE(once("a", "1") && once("a", "1"));
  EXPECT_EQ(made, 1);
  EXPECT_TRUE(once("b", "1"));
  EXPECT_EQ(made, 2) << "of another caller";
  EXPECT_TRUE(once("a", "2") && once("a", "1"));
  EXPECT_EQ(made, 4) << "the oldest is forgotten";
  EXPECT_TRUE(once("a", "") && once("a", ""));
  EXPECT_EQ(made, 6) << "without an id";
}

TEST(ChangeLedger, WhatFailsOrThrowsIsNotMade) {
  ChangeLedger ledger(2);
  EXPECT_FALSE(ledger.Once("a", "1", "c", [] { return absl::UnavailableError("away"); }).ok());
  EXPECT_THROW((void)ledger.Once("a", "1", "c", []() -> absl::StatusOr<bool> { throw 1; }), int);
  EXPECT_TRUE(*ledger.Once("a", "1", "c", [] { return true; }));
}

}  // namespace
}  // namespace stowage::testing
