// Servers as they are run, and a Redis: what was decided outlives a Redis that comes back empty, a server that is
// killed, and its plans; with a durable Redis for decisions also the disk of whoever decided it.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "proto/codec/codec.h"
#include "stowage/v1/plan_admin_service.grpc.pb.h"
#include "stowage/v1/plan_service.grpc.pb.h"
#include "tests/server/process/child_process.h"
#include "tests/server/process/scrape.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/support/profiles.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

const bool kSkips = (SkipWithoutRedis(), true);

constexpr int64_t kBudget = 1599;

// A server as it is run, with files of its own in the folder.
class Stowaged {
 public:
  Stowaged(std::string folder, std::string redis, std::vector<std::string> flags = {})
      : folder_(std::move(folder)), redis_(std::move(redis)), flags_(std::move(flags)) {
    std::filesystem::create_directory(folder_);
    Start();
  }

  void Start() {
    std::vector<std::string> command = {STOWAGED_BINARY,
                                        "--listen=127.0.0.1:0",
                                        "--metrics_listen=127.0.0.1:0",
                                        "--log_level=error",
                                        "--store=sqlite:" + folder_ + "/plans.db",
                                        "--redis=" + redis_,
                                        "--redis_timeout=10s"};
    command.insert(command.end(), flags_.begin(), flags_.end());
    process_ = std::make_unique<ChildProcess>(command);
    const std::string line = process_->ReadUntil("\n");
    std::smatch parts;
    const std::regex format("listening on (\\S+), metrics on (\\S+)\n");
    ASSERT_TRUE(std::regex_search(line, parts, format)) << line;
    metrics_ = parts[2];
    const auto channel = grpc::CreateChannel(parts[1], grpc::InsecureChannelCredentials());
    stub_ = v1::PlanService::NewStub(channel);
    admin_ = v1::PlanAdminService::NewStub(channel);
  }

  void Kill() {
    process_->Signal(SIGKILL);
    process_->Wait();
  }

  void KillAndLoseItsDisk() {
    Kill();
    std::filesystem::remove_all(folder_);
  }

  // With its plans; what was decided is in another file.
  void KillAndLosePlans() {
    Kill();
    for (const char* end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(folder_ + "/plans.db" + end);
    }
  }

  grpc::Status Get(const v1::PlanKey& key, v1::GetPlanResponse* response) {
    v1::GetPlanRequest request;
    *request.add_keys() = key;
    request.mutable_budget()->set_bytes(kBudget);
    grpc::ClientContext context;
    return stub_->GetPlan(&context, request, response);
  }

  v1::ComputePlanResponse Compute(int stages) {
    ProfileShape shape;
    shape.stages = stages;
    v1::ComputePlanRequest request;
    *request.mutable_profile() = ToProto(ChainProfile(shape));
    request.mutable_budget()->set_bytes(kBudget);
    v1::ComputePlanResponse response;
    grpc::ClientContext context;
    const grpc::Status status = stub_->ComputePlan(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  grpc::Status Pin(const v1::PlanKey& key) {
    v1::PinPlanRequest request;
    *request.mutable_key() = key;
    request.set_budget_bytes(kBudget);
    request.set_revision(1);
    v1::PinPlanResponse response;
    grpc::ClientContext context;
    return admin_->PinPlan(&context, request, &response);
  }

  grpc::Status Freeze(const v1::PlanKey& key) {
    v1::FreezePlanRequest request;
    *request.mutable_key() = key;
    v1::FreezePlanResponse response;
    grpc::ClientContext context;
    return admin_->FreezePlan(&context, request, &response);
  }

  bool Delete(const v1::PlanKey& key) {
    v1::DeletePlanRequest request;
    *request.mutable_key() = key;
    v1::DeletePlanResponse response;
    grpc::ClientContext context;
    return admin_->DeletePlan(&context, request, &response).ok() && response.deleted();
  }

  v1::ListPlansResponse List(const v1::PlanKey& key) {
    v1::ListPlansRequest request;
    *request.mutable_key() = key;
    v1::ListPlansResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ListPlans(&context, request, &response).ok());
    return response;
  }

  std::string Metrics() const { return Scrape(metrics_); }

 private:
  const std::string folder_, redis_;
  const std::vector<std::string> flags_;
  std::string metrics_;  // where they are
  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<v1::PlanService::Stub> stub_;
  std::unique_ptr<v1::PlanAdminService::Stub> admin_;
};

bool ComesTrue(const std::function<bool()>& done) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!done()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

TEST(DecisionsProcess, OutliveAnEmptiedRedisAKilledServerAndItsPlans) {
  const TemporaryFolder folder;
  RedisServer redis;
  const std::string socket = redis.address().host_or_path;
  Stowaged a(folder / "a", socket), b(folder / "b", socket);
  const v1::PlanKey deleted = a.Compute(6).key(), pinned = a.Compute(7).key(),
                    frozen = a.Compute(8).key();
  v1::GetPlanResponse response;
  for (const v1::PlanKey& key : {deleted, pinned, frozen}) {
    const grpc::Status status = b.Get(key, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  ASSERT_TRUE(a.Pin(pinned).ok());
  ASSERT_TRUE(a.Freeze(frozen).ok());
  ASSERT_TRUE(a.Delete(deleted));

  redis.Ask({"FLUSHALL"});
  a.KillAndLosePlans();
  a.Start();
  EXPECT_EQ(a.Get(deleted, &response).error_code(), grpc::NOT_FOUND);
  EXPECT_TRUE(a.Get(pinned, &response).ok());
  EXPECT_TRUE(a.Get(frozen, &response).ok());
  // The other one has had copies, and learns within some seconds.
  for (Stowaged* server : {&a, &b}) {
    EXPECT_TRUE(ComesTrue([&] {
      v1::GetPlanResponse ignored;
      return server->Get(deleted, &ignored).error_code() == grpc::NOT_FOUND;
    }));
    EXPECT_TRUE(ComesTrue([&] {
      v1::GetPlanResponse ignored;
      server->Get(pinned, &ignored);
      const v1::ListPlansResponse listed = server->List(pinned);
      return listed.plans_size() == 1 && listed.plans(0).pinned();
    }));
    EXPECT_TRUE(ComesTrue([&] {
      v1::GetPlanResponse ignored;
      server->Get(frozen, &ignored);
      const v1::ListPlansResponse listed = server->List(frozen);
      return listed.plans_size() == 1 && listed.plans(0).frozen();
    }));
    EXPECT_EQ(server->List(deleted).plans_size(), 0);
  }
  // A later request is another matter.
  EXPECT_EQ(b.Compute(6).source(), v1::PLAN_SOURCE_SOLVED);
  EXPECT_TRUE(b.Get(deleted, &response).ok());
}

std::vector<std::string> WithDecisionsIn(const RedisServer& redis) {
  return {"--decisions_redis=" + redis.address().host_or_path, "--decisions_redis_timeout=10s"};
}

// All that knows the decisions is the Redis of their own, which is killed, too.
TEST(DecisionsProcess, WithADurableRedisOutliveTheDiskOfWhoeverDecided) {
  const TemporaryFolder folder;
  RedisServer plans, decisions(Durable());
  const std::string socket = plans.address().host_or_path;
  Stowaged a(folder / "a", socket, WithDecisionsIn(decisions));
  Stowaged b(folder / "b", socket, WithDecisionsIn(decisions));
  const v1::PlanKey deleted = a.Compute(6).key(), pinned = a.Compute(7).key(),
                    frozen = a.Compute(8).key();
  v1::GetPlanResponse response;
  for (const v1::PlanKey& key : {deleted, pinned, frozen}) ASSERT_TRUE(b.Get(key, &response).ok());
  b.Kill();  // it has copies from before
  ASSERT_TRUE(a.Pin(pinned).ok());
  ASSERT_TRUE(a.Freeze(frozen).ok());
  ASSERT_TRUE(a.Delete(deleted));
  decisions.Kill();
  a.KillAndLoseItsDisk();
  plans.Ask({"FLUSHALL"});
  decisions.Start();
  b.Start();
  EXPECT_TRUE(ComesTrue([&] {
    v1::GetPlanResponse ignored;
    return b.Get(deleted, &ignored).error_code() == grpc::NOT_FOUND;
  }));
  EXPECT_TRUE(ComesTrue([&] {
    v1::GetPlanResponse ignored;
    b.Get(pinned, &ignored);
    const v1::ListPlansResponse listed = b.List(pinned);
    return listed.plans_size() == 1 && listed.plans(0).pinned();
  }));
  EXPECT_TRUE(ComesTrue([&] {
    v1::GetPlanResponse ignored;
    b.Get(frozen, &ignored);
    const v1::ListPlansResponse listed = b.List(frozen);
    return listed.plans_size() == 1 && listed.plans(0).frozen();
  }));
}

TEST(DecisionsProcess, WithoutTheDurableRedisNothingIsDecidedAndPlansAreServed) {
  const TemporaryFolder folder;
  RedisServer plans, decisions(Durable());
  decisions.Kill();
  // It starts all the same.
  Stowaged a(folder / "a", plans.address().host_or_path, WithDecisionsIn(decisions));
  const v1::PlanKey key = a.Compute(6).key();
  EXPECT_EQ(a.Pin(key).error_code(), grpc::UNAVAILABLE);
  EXPECT_FALSE(a.Delete(key));
  EXPECT_TRUE(ComesTrue([&] {
    a.Pin(key);
    return a.Metrics().find("\nstowage_redis_resting{redis=\"decisions\"} 1\n") !=
           std::string::npos;
  }));
  EXPECT_NE(a.Metrics().find("\nstowage_redis_resting{redis=\"cache\"} 0\n"), std::string::npos);
  v1::GetPlanResponse response;
  EXPECT_TRUE(a.Get(key, &response).ok());
  const v1::ListPlansResponse listed = a.List(key);
  ASSERT_EQ(listed.plans_size(), 1);
  EXPECT_FALSE(listed.plans(0).pinned());
  decisions.Start();
  EXPECT_TRUE(ComesTrue([&] { return a.Pin(key).ok(); }));
}

TEST(DecisionsProcess, ARedisThatIsNotDurableEndsTheStart) {
  const TemporaryFolder folder;
  const RedisServer plans;
  const std::string socket = plans.address().host_or_path;
  ChildProcess child({STOWAGED_BINARY, "--listen=127.0.0.1:0",
                      "--metrics_listen=", "--store=sqlite:" + folder / "plans.db",
                      "--redis=" + socket, "--decisions_redis=" + socket});
  const std::string said = child.ReadUntil("no such text");
  EXPECT_EQ(child.Wait(), 1);
  EXPECT_NE(said.find("--decisions_redis: appendonly of Redis is no: must be yes"),
            std::string::npos)
      << said;
}

}  // namespace
}  // namespace stowage::testing
