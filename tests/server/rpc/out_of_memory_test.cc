// Where memory runs out in the middle of something, it has been done or not, and what comes after it goes on.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "server/rpc/change_ledger.h"
#include "server/service/unfinished_plans.h"
#include "tests/server/rpc/rpc_fixture.h"
#include "tests/server/support/asked.h"
#include "tests/server/support/failing_allocations.h"

namespace stowage::testing {
namespace {

TEST(OutOfMemory, WhatUnfinishedPlansHadNoRoomForHasNoPlaceInTheirOrder) {
  const Asked problem = ProblemOf(ProfileShape());
  const Plan plan = *MakePlan(ChainProfile({}), Bytes(1500), PlanOptions());
  bool ran_out = true;
  int after = 0;
  for (; ran_out; ++after) {
    UnfinishedPlans plans(Bytes(64 << 10));
    ran_out = RunsOut(after, [&] { plans.Keep(*problem, Bytes(1499), {plan}); });
    // More than there is room for: the oldest go.
    for (int64_t budget = 1500; budget < 1700; ++budget)
      plans.Keep(*problem, Bytes(budget), {plan});
    EXPECT_FALSE(plans.Find(*problem, Bytes(1500)).has_value());
    EXPECT_TRUE(plans.Find(*problem, Bytes(1699)).has_value());
  }
  EXPECT_GT(after, 1);
}

TEST(OutOfMemory, AChangeIsMadeOnceAndNobodyWaitsForOneThatIsNot) {
  const std::string caller(100, 'c'), id(100, 'i'), change(100, 'x');
  bool ran_out = true;
  int after = 0;
  for (; ran_out; ++after) {
    ChangeLedger ledger(2);
    int made = 0;
    const auto make = [&made]() -> absl::StatusOr<bool> { return ++made > 0; };
    ran_out = RunsOut(after, [&] { (void)ledger.Once(caller, id, change, make); });
    const absl::StatusOr<bool> said = ledger.Once(caller, id, change, make);
    EXPECT_TRUE(said.ok() && *said) << said.status();
    EXPECT_EQ(made, 1);
  }
  EXPECT_GT(after, 1);
}

// Memory runs out once on the thread that solves, at any allocation between a call's last solve and the end of its answer.
class AnswersWithoutMemory : public ::testing::Test {
 private:
  std::atomic<int> made_{0};  // plans or frontiers of the call
  std::atomic<int> last_{-1};
  std::atomic<int> after_{0};
  std::atomic<std::thread::id> armed_{};  // whose allocation is to fail
  std::atomic<bool> spared_{false};       // none has failed: there were fewer

 protected:
  AnswersWithoutMemory() {
    fixture_.solver.WhenMade([this] {
      if (++made_ != last_) return;
      armed_ = std::this_thread::get_id();
      FailAllocationAfter(after_);
    });
    // What gRPC does from here on is not ours to repair.
    fixture_.metrics.on_handled = [this] {
      const std::thread::id armed = armed_.exchange({});
      if (armed == std::thread::id()) return;
      EXPECT_EQ(armed, std::this_thread::get_id()) << "answered elsewhere";
      if (FailAllocationAfter(-1) >= 0) spared_ = true;
    };
  }

  // Makes the call, whose answer is in no cache, with each allocation failing in turn. `nth`: of 0, 1, ...
  void ExpectErrorsAndThenAnAnswer(const std::function<grpc::Status(int nth)>& call) {
    ASSERT_TRUE(call(0).ok());
    last_ = made_.load();
    absl::Status status;
    for (int nth = 1; !spared_; ++nth) {
      ASSERT_LT(nth, 10000) << "an answer takes fewer allocations";
      const absl::Status before = status;
      made_ = 0;
      after_ = nth - 1;
      status = FromGrpcStatus(call(nth));
      ASSERT_EQ(made_, last_);
      if (spared_) {
        EXPECT_TRUE(status.ok()) << status;
        // The last allocation of all is the message's.
        EXPECT_TRUE(absl::IsResourceExhausted(before)) << before;
      } else if (
          !status.ok()) {  // where the answer does not need what failed, it may come all the same
        ASSERT_TRUE(absl::IsResourceExhausted(status)) << nth << " " << status;
        EXPECT_EQ(GetReason(status), "OUT_OF_MEMORY");
      }
    }
    v1::ComputePlanResponse response;
    EXPECT_TRUE(fixture_.Compute(ComputeRequestFor(ChainProfile({}), kTightBytes), &response).ok());
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    EXPECT_EQ(fixture_.service.Drain(patience).abandoned, 0);
  }

  RpcFixture fixture_;
};

TEST_F(AnswersWithoutMemory, AFrontierThatCannotBeAnsweredIsAnErrorOfItsCallAlone) {
  ExpectErrorsAndThenAnAnswer([this](int nth) {
    ProfileShape shape;
    shape.output = 1000 + nth;
    v1::GetFrontierRequest request;
    *request.mutable_profile() = ToProto(ChainProfile(shape));
    v1::GetFrontierResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return fixture_.stub->GetFrontier(&context, request, &response);
  });
}

TEST_F(AnswersWithoutMemory, ABatchThatCannotBeAnsweredIsAnErrorOfItsCallAlone) {
  const v1::FitBatchRequest request = TwoBatches();
  ExpectErrorsAndThenAnAnswer([&](int) {
    v1::FitBatchResponse response;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    return fixture_.stub->FitBatch(&context, request, &response);
  });
}

}  // namespace
}  // namespace stowage::testing
