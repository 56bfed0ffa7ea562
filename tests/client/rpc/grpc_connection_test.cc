#include "client/rpc/grpc_connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "client/rpc/local_connection.h"
#include "proto/codec/codec.h"
#include "proto/codec/grpc_status.h"
#include "solvers/model/field_error.h"
#include "tests/client/rpc/served_connection.h"
#include "tests/client/rpc/test_certificates.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

using Clock = CallOptions::Clock;

class GrpcConnectionTest : public ConnectionTest {};

TEST_F(GrpcConnectionTest, ComputePlan) {
  FakeServer server(address_.uri());
  server.compute_plan = SolveFor;
  const auto reply = Compute();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->source, PlanSource::kShared);
  const auto local = MakeLocalConnection()->ComputePlan(SmallProfile(), budget_, {}, {});
  ASSERT_TRUE(local.ok()) << local.status();
  EXPECT_EQ(reply->plan.status, PlanStatus::kFound);
  EXPECT_EQ(reply->plan.schedule, local->plan.schedule);
  EXPECT_EQ(reply->plan.prediction.peak, local->plan.prediction.peak);
  KeyOptions of_tenant;
  of_tenant.tenant = "tenant of the caller";
  EXPECT_EQ(reply->key, MakePlanKey(SmallProfile(), of_tenant));
}

TEST_F(GrpcConnectionTest, GetPlan) {
  FakeServer server(address_.uri());
  const PlanKey first{kEncodingVersion, Sha256("first")};
  const PlanKey second{kEncodingVersion, Sha256("second")};
  server.get_plan = [](const v1::GetPlanRequest& request, v1::GetPlanResponse* response) {
    EXPECT_EQ(request.keys_size(), 2);
    EXPECT_EQ(request.budget().share_of_store_all(), 0.8);
    *response->mutable_key() = request.keys(1);
    response->mutable_plan()->set_status(v1::PLAN_STATUS_NOT_FOUND);
    response->mutable_plan()->set_digest(ScheduleDigest({}).ToBinary());
    return absl::OkStatus();
  };
  const auto reply = connection_->GetPlan({first, second}, budget_, {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->key, second);
  EXPECT_EQ(reply->source, PlanSource::kCache);
}

TEST_F(GrpcConnectionTest, GetCapabilities) {
  FakeServer server(address_.uri());
  const auto capabilities = connection_->GetCapabilities({});
  ASSERT_TRUE(capabilities.ok()) << capabilities.status();
  EXPECT_EQ(capabilities->server_version, "9.8.7");
  EXPECT_EQ(capabilities->key_encoding_version, 1);
  ASSERT_EQ(capabilities->solvers.size(), 1u);
  EXPECT_EQ(capabilities->solvers[0].name, "a");
  EXPECT_EQ(capabilities->solvers[0].description, "b");
  EXPECT_EQ(capabilities->solvers[0].schedule_class, "c");
  EXPECT_EQ(capabilities->max_message, Bytes(1));
  EXPECT_EQ(capabilities->max_stages, 2);
  EXPECT_EQ(capabilities->max_vertices, 3);
  EXPECT_THAT(capabilities->implemented_rpcs, testing::ElementsAre("GetPlan"));
}

TEST_F(GrpcConnectionTest, NotFoundWithItsReason) {
  FakeServer server(address_.uri());
  server.get_plan = [](const v1::GetPlanRequest&, v1::GetPlanResponse*) {
    return WithReason(absl::NotFoundError("no plan"), kReasonPlanNotCached);
  };
  const auto reply = connection_->GetPlan({PlanKey()}, budget_, {});
  EXPECT_TRUE(absl::IsNotFound(reply.status())) << reply.status();
  EXPECT_EQ(GetReason(reply.status()), kReasonPlanNotCached);
}

TEST_F(GrpcConnectionTest, InvalidArgumentWithItsField) {
  FakeServer server(address_.uri());
  server.compute_plan = SolveFor;
  budget_ = Bytes(-5);
  const auto reply = Compute();
  EXPECT_TRUE(absl::IsInvalidArgument(reply.status())) << reply.status();
  const auto violation = GetFieldViolation(reply.status());
  ASSERT_TRUE(violation.has_value()) << reply.status();
  EXPECT_EQ(violation->field, "budget.bytes");
  EXPECT_EQ(violation->value, "-5");
  EXPECT_EQ(violation->rule, "must be >= 0");
}

TEST_F(GrpcConnectionTest, DeadlineHoldsAgainstAServerThatHangs) {
  FakeServer server(address_.uri());
  server.hangs = true;
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [&](milliseconds time) {
    const int calls = server.calls;
    const auto start = Clock::now();
    const auto reply = Compute(CallOptions::Within(time));
    EXPECT_GE(Clock::now() - start, time / 2);
    // Where there is no time to connect it is another error.
    if (absl::IsUnavailable(reply.status())) return false;
    EXPECT_TRUE(absl::IsDeadlineExceeded(reply.status())) << reply.status();
    return server.calls == calls + 1;
  }));
}

TEST_F(GrpcConnectionTest, DefaultTimeoutHoldsWithoutADeadline) {
  FakeServer server(address_.uri());
  server.hangs = true;
  GrpcOptions options = OptionsFor(address_);
  EXPECT_TRUE(WithinSomeTime(milliseconds(200), [&](milliseconds time) {
    options.default_timeout = time;
    connection_ = MakeGrpcConnection(options);
    const absl::Status status = Compute({}).status();
    if (absl::IsUnavailable(status)) return false;  // it took half of the time to connect
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    return true;
  }));
}

TEST_F(GrpcConnectionTest, ConnectTimeoutHoldsAgainstAListenerThatIsSilent) {
  SilentListener listener(address_);
  GrpcOptions options = OptionsFor(address_);
  options.connect_timeout = milliseconds(200);
  connection_ = MakeGrpcConnection(options);
  const auto reply = Compute();
  EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("no connection within 200 ms"));
}

TEST_F(GrpcConnectionTest, CancelTokenEndsConnecting) {
  SilentListener listener(address_);
  CallOptions options = CallOptions::Within(seconds(20));
  options.cancel = std::make_shared<CancelToken>();
  std::thread canceller([&options] {
    std::this_thread::sleep_for(milliseconds(100));
    options.cancel->Cancel();
  });
  EXPECT_TRUE(absl::IsCancelled(Compute(options).status()));
  canceller.join();
}

TEST_F(GrpcConnectionTest, ConnectingLeavesHalfOfTheTime) {
  SilentListener listener(address_);
  const auto reply = Compute(CallOptions::Within(milliseconds(1000)));
  EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
  const std::string message(reply.status().message());
  constexpr char kBefore[] = "no connection within ";
  const size_t at = message.find(kBefore);
  ASSERT_NE(at, std::string::npos) << message;
  EXPECT_LE(std::stoi(message.substr(at + sizeof kBefore - 1)), 500) << message;
}

TEST_F(GrpcConnectionTest, UnavailableHoldsAHint) {
  const auto reply = Compute();
  EXPECT_TRUE(absl::IsUnavailable(reply.status())) << reply.status();
  const std::string message(reply.status().message());
  EXPECT_THAT(message, HasSubstr("is stowaged running at " + address_.uri()));
  // A refusal is known at once; only silence takes the connect timeout.
  EXPECT_THAT(message, testing::Not(HasSubstr("no connection within")));
}

TEST_F(GrpcConnectionTest, ServerThatComesLaterIsFoundAtTheNextCall) {
  ASSERT_TRUE(absl::IsUnavailable(Compute().status()));
  FakeServer server(address_.uri());
  server.compute_plan = SolveFor;
  const auto reply = Compute();
  EXPECT_TRUE(reply.ok()) << reply.status();
}

TEST_F(GrpcConnectionTest, ServerThatRestartsIsFoundAgain) {
  for (int i = 0; i < 3; ++i) {
    FakeServer server(address_.uri());
    server.compute_plan = SolveFor;
    auto reply = Compute();
    // The first call may meet what is left of the old connection.
    if (absl::IsUnavailable(reply.status())) reply = Compute();
    EXPECT_TRUE(reply.ok()) << reply.status();
  }
}

// gRPC ends so what comes to a server that stops before its client knows.
TEST_F(GrpcConnectionTest, WhatTheServerCancelsIsUnavailable) {
  FakeServer server(address_.uri());
  server.compute_plan = [](const auto&, auto*) { return absl::CancelledError("gone"); };
  EXPECT_TRUE(absl::IsUnavailable(Compute().status())) << Compute().status();
}

TEST_F(GrpcConnectionTest, RequestOverTheLimit) {
  FakeServer server(address_.uri());
  GrpcOptions options = OptionsFor(address_);
  options.message_limit = Bytes(4000);
  connection_ = MakeGrpcConnection(options);
  const auto reply = connection_->ComputePlan(SmallProfile(100, 200), budget_, {}, {});
  EXPECT_TRUE(absl::IsResourceExhausted(reply.status())) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("limit is 4000 bytes"));
  EXPECT_EQ(server.calls, 0);
}

TEST_F(GrpcConnectionTest, AnswerOverTheLimit) {
  FakeServer server(address_.uri());
  server.compute_plan = [](const v1::ComputePlanRequest& request, v1::ComputePlanResponse* out) {
    const absl::Status status = SolveFor(request, out);
    out->mutable_plan()->set_explanation(std::string(5000, 'e'));
    return status;
  };
  GrpcOptions options = OptionsFor(address_);
  options.message_limit = Bytes(4000);
  connection_ = MakeGrpcConnection(options);
  const auto reply = Compute();
  EXPECT_TRUE(absl::IsResourceExhausted(reply.status())) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("limit is 4000 bytes"));
}

TEST_F(GrpcConnectionTest, RequestOverTheLimitOfTheServer) {
  FakeServer server(address_.uri(), 3000);
  const auto reply = connection_->ComputePlan(SmallProfile(100, 200), budget_, {}, {});
  EXPECT_TRUE(absl::IsResourceExhausted(reply.status())) << reply.status();
  EXPECT_THAT(std::string(reply.status().message()), HasSubstr("3000"));
}

TEST_F(GrpcConnectionTest, ForkedChildIsRefusedAtOnce) {
  FakeServer server(address_.uri());
  server.compute_plan = SolveFor;
  ASSERT_TRUE(Compute().ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    const auto reply = Compute();
    auto fresh = MakeGrpcConnection(OptionsFor(address_));
    const auto of_fresh = fresh->GetCapabilities({});
    connection_.reset();
    fresh.reset();
    _exit(absl::IsFailedPrecondition(reply.status()) &&
                  absl::IsFailedPrecondition(of_fresh.status())
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(Compute().ok());
}

// Another thread may hold a lock when the process forks: in the child nobody opens it.
TEST_F(GrpcConnectionTest, ForkedChildWaitsForNoLockOfItsParent) {
  FakeServer server(address_.uri());
  CredentialFolder folder;
  GrpcOptions options = OptionsFor(address_);
  options.token_file = folder.PathOf("token");
  ASSERT_EQ(mkfifo(options.token_file.c_str(), 0600), 0);
  connection_ = MakeGrpcConnection(options);
  absl::Status of_parent;
  std::thread parent([&] { of_parent = connection_->GetCapabilities({}).status(); });
  int token = -1;  // opens once the other thread reads, which it does under the lock of the token
  while (token < 0) token = open(options.token_file.c_str(), O_WRONLY | O_NONBLOCK);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(absl::IsFailedPrecondition(connection_->GetCapabilities({}).status()) ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(write(token, "a-token", 7), 7);
  close(token);
  parent.join();
  EXPECT_TRUE(of_parent.ok()) << of_parent;
  std::remove(options.token_file.c_str());
}

TEST_F(GrpcConnectionTest, ManyThreadsShareAConnection) {
  FakeServer server(address_.uri());
  server.compute_plan = SolveFor;
  std::atomic<int> answered{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] { answered += Compute().ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered, 16);
}

}  // namespace
}  // namespace stowage
