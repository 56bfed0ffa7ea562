#include "server/rpc/reply_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/codec/codec.h"
#include "server/rpc/get_plan_bytes.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage::testing {
namespace {

std::shared_ptr<const Plan> PlanOf(int64_t revision, size_t explanation = 10) {
  auto plan = std::make_shared<Plan>();
  plan->status = PlanStatus::kFound;
  plan->budget = Bytes(1000);
  plan->schedule = {ForwardSave(1), Backward(1)};
  plan->revision = revision;
  plan->explanation = std::string(explanation, 'e');
  return plan;
}

std::string Whole(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

v1::GetPlanResponse Reply(const CachedPlan& cached, ReplyCache* replies) {
  v1::GetPlanResponse response;
  EXPECT_TRUE(response.ParseFromString(Whole(GetPlanReply(cached, replies->Write(cached.plan)))));
  return response;
}

TEST(GetPlanReply, IsTheMessageThatTheCodecMakes) {
  ReplyCache replies(Bytes(1 << 20));
  const PlanKey key{1, Sha256("key")};
  const auto plan = PlanOf(3);
  for (const int64_t budget : {0, 7, 1 << 20, 1000}) {
    v1::GetPlanResponse expected;
    *expected.mutable_plan() = ToProto(*plan);
    expected.mutable_plan()->set_budget_bytes(budget);
    *expected.mutable_key() = ToProto(key);
    CachedPlan cached{plan, Bytes(budget), key};
    EXPECT_EQ(Reply(cached, &replies).SerializeAsString(), expected.SerializeAsString());
    expected.set_profile_wanted(true);
    cached.profile_wanted = true;
    EXPECT_EQ(Reply(cached, &replies).SerializeAsString(), expected.SerializeAsString());
  }
}

TEST(ReplyCache, WritesAPlanOnce) {
  ReplyCache replies(Bytes(1 << 20));
  const auto plan = PlanOf(1, 500);
  const WrittenPlan first = replies.Write(plan);
  const WrittenPlan second = replies.Write(plan);
  EXPECT_EQ(first.fields.begin(), second.fields.begin());
  EXPECT_EQ(first.digest, ScheduleDigest(plan->schedule));
  EXPECT_EQ(second.digest, first.digest);
}

TEST(ReplyCache, PlansThatAreGoneGo) {
  ReplyCache replies(Bytes(1 << 30));
  std::vector<std::shared_ptr<const Plan>> alive;
  for (int64_t i = 0; i < 100; ++i) alive.push_back(PlanOf(i, 500));
  for (const auto& plan : alive) replies.Write(plan);
  const Bytes of_alive = replies.held();
  std::vector<std::shared_ptr<const Plan>> dying;  // each at an address of its own for a while
  for (int64_t i = 0; i < 5000; ++i) {
    dying.push_back(PlanOf(i, 500));
    replies.Write(dying.back());
    if (dying.size() == 50) dying.clear();
  }
  EXPECT_LE(replies.held(), Bytes(of_alive.value() * 4));
  for (const auto& plan : alive) {
    const WrittenPlan first = replies.Write(plan);
    EXPECT_EQ(first.fields.begin(), replies.Write(plan).fields.begin());
  }
}

TEST(ReplyCache, APlanAtTheAddressOfADeadOneIsAnotherPlan) {
  ReplyCache replies(Bytes(1 << 20));
  // An arena of one place: the second plan lives where the first one did.
  alignas(Plan) unsigned char place[sizeof(Plan)];
  for (int64_t revision = 1; revision <= 3; ++revision) {
    const std::shared_ptr<const Plan> plan(new (place) Plan(*PlanOf(revision)),
                                           [](const Plan* dead) { dead->~Plan(); });
    EXPECT_EQ(Reply(CachedPlan{plan, Bytes(5), PlanKey{}}, &replies).plan().revision(), revision);
  }
}

TEST(ReplyCache, HoldsNoMoreThanItsCapacity) {
  const Bytes capacity(64 << 10);
  ReplyCache replies(capacity);
  std::vector<std::shared_ptr<const Plan>> plans;
  for (int i = 0; i < 1000; ++i) {
    plans.push_back(PlanOf(i, static_cast<size_t>(i)));
    EXPECT_GT(replies.Write(plans.back()).fields.size(), static_cast<size_t>(i));
    ASSERT_LE(replies.held(), capacity);
  }
  EXPECT_GT(replies.held(), Bytes(capacity.value() / 2));
  const auto huge = PlanOf(1, 1 << 20);
  EXPECT_GT(replies.Write(huge).fields.size(), size_t{1} << 20);
  EXPECT_LE(replies.held(), capacity);
}

TEST(ReplyCache, ManyThreadsAtOnce) {
  ReplyCache replies(Bytes(16 << 10));
  std::vector<std::shared_ptr<const Plan>> plans;
  for (int i = 0; i < 64; ++i) plans.push_back(PlanOf(i, 300));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const auto& plan = plans[static_cast<size_t>(i * 7 + t) % plans.size()];
        const CachedPlan cached{plan, Bytes(i), PlanKey{}};
        EXPECT_EQ(Reply(cached, &replies).plan().revision(), plan->revision);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stowage::testing
