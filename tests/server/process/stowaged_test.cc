// The built binary: ready line, flags, ports, signals.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <fstream>
#include <future>
#include <regex>
#include <thread>

#include "proto/codec/codec.h"
#include "stowage/v1/plan_service.grpc.pb.h"
#include "tests/proto/trace_sink.h"
#include "tests/server/process/child_process.h"
#include "tests/server/process/scrape.h"
#include "tests/server/rpc/raw_call.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const char* const kFreePorts[] = {"--listen=127.0.0.1:0", "--metrics_listen=127.0.0.1:0"};

// In memory: servers of several tests run at once, and none has another one's plans.
std::vector<std::string> Command(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {STOWAGED_BINARY, "--store=memory"};
  command.insert(command.end(), flags.begin(), flags.end());
  return command;
}

// One thread, which has all of the solvers' memory whatever the machine. Little is logged, so that
// what is read is what is said on standard output.
std::vector<std::string> FreePorts() {
  return Command({kFreePorts[0], kFreePorts[1], "--solver_threads=1", "--log_level=error"});
}

// The two addresses of the ready line.
std::pair<std::string, std::string> Ready(ChildProcess* child) {
  const std::string line = child->ReadUntil("\n");
  std::smatch parts;
  const std::regex format("listening on (\\S+), metrics on (\\S+)\n");
  if (!std::regex_match(line, parts, format)) {
    ADD_FAILURE() << "not a ready line: " << line;
    return {};
  }
  return {parts[1], parts[2]};
}

std::unique_ptr<v1::PlanService::Stub> Connect(const std::string& address) {
  return v1::PlanService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
}

// Stages of different sizes, so that only a large table knows the optimum.
v1::ComputePlanRequest TableRequest(int stages, int64_t slots) {
  ProfileShape shape;
  shape.stages = stages;
  shape.output = 1000003;
  v1::ComputePlanRequest request;
  *request.mutable_profile() = ToProto(ChainProfile(shape));
  for (int i = 0; i < shape.stages; ++i) {
    auto* stage = request.mutable_profile()->mutable_chain()->mutable_stages(i);
    stage->set_output_bytes(stage->output_bytes() + 7919 * (i % 97));
    stage->set_saved_bytes(stage->saved_bytes() + 7919 * (i % 89));
  }
  request.mutable_options()->set_solver("optimal_persistent");
  request.mutable_options()->set_slots(slots);
  request.mutable_budget()->set_share_of_store_all(0.5);
  return request;
}

// A table that takes longer than any test waits for.
v1::ComputePlanRequest EndlessRequest() { return TableRequest(1200, 1000); }

struct OpenCall {
  OpenCall(const std::string& address, v1::ComputePlanRequest asked)
      : OpenCall(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()),
                 std::move(asked)) {}
  OpenCall(const std::shared_ptr<grpc::Channel>& channel, v1::ComputePlanRequest asked)
      : request(std::move(asked)),
        stub(v1::PlanService::NewStub(channel)),
        result(std::async(std::launch::async,
                          [this] { return stub->ComputePlan(&context, request, &response); })) {}

  v1::ComputePlanRequest request;
  v1::ComputePlanResponse response;
  grpc::ClientContext context;
  std::unique_ptr<v1::PlanService::Stub> stub;
  std::future<grpc::Status> result;
};

// Once its one solver thread is at work.
bool Solves(const std::string& metrics) {
  for (int i = 0; i < 2000; ++i) {
    if (Scrape(metrics).find("\nstowage_solvers_busy 1\n") != std::string::npos) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

TEST(Stowaged, SaysWhenItIsReadyAnswersAndEndsCleanlyOnSigterm) {
  ChildProcess child(FreePorts());
  const auto [address, metrics] = Ready(&child);
  EXPECT_THAT(address, MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  EXPECT_THAT(metrics, MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  v1::ComputePlanRequest request;
  *request.mutable_profile() = ToProto(ChainProfile({}));
  request.mutable_budget()->set_bytes(1500);
  v1::ComputePlanResponse response;
  grpc::ClientContext context;
  const grpc::Status status = Connect(address)->ComputePlan(&context, request, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.plan().status(), v1::PLAN_STATUS_FOUND);
  child.Signal(SIGTERM);
  const std::string rest = child.ReadUntil("abandoned\n");
  EXPECT_THAT(rest, HasSubstr("SIGTERM: draining"));
  // The call may count as open for a moment after its client has the answer.
  EXPECT_THAT(rest, ContainsRegex("drained: [01] open calls answered, 0 abandoned"));
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, ListensOnAUnixSocketWithoutMetrics) {
  const std::string path = ::testing::TempDir() + "stowaged_test_" + std::to_string(getpid());
  ChildProcess child(Command({"--listen", "unix:" + path, "--metrics_listen="}));
  const auto [address, metrics] = Ready(&child);
  EXPECT_EQ(address, "unix:" + path);
  EXPECT_EQ(metrics, "none");
  v1::GetCapabilitiesResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(Connect(address)->GetCapabilities(&context, {}, &response).ok());
  child.Signal(SIGINT);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, AFlagKeepsAnAuditLog) {
  const std::string path = ::testing::TempDir() + "stowaged_audit_" + std::to_string(getpid());
  std::vector<std::string> command = FreePorts();
  command.emplace_back("--audit_log=" + path);
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  v1::ComputePlanRequest request;
  *request.mutable_profile() = ToProto(ChainProfile({}));
  request.mutable_budget()->set_bytes(1500);
  request.set_job("train-17");
  v1::ComputePlanResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(Connect(address)->ComputePlan(&context, request, &response).ok());
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
  std::ifstream file(path);
  std::string line;
  EXPECT_TRUE(std::getline(file, line));
  EXPECT_THAT(line, HasSubstr("\"event\":\"hand_out\""));
  EXPECT_THAT(line, HasSubstr("\"job\":\"train-17\""));
  EXPECT_FALSE(std::getline(file, line));
  for (const std::string& made : {path, path + ".changes"}) {
    EXPECT_EQ(std::remove(made.c_str()), 0) << made;
  }
}

TEST(Stowaged, ACallStillOpenAtTheDrainTimeoutIsAbandoned) {
  std::vector<std::string> command = FreePorts();
  command.emplace_back("--drain_timeout=300ms");
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  OpenCall call(address, EndlessRequest());
  ASSERT_TRUE(Solves(metrics));
  child.Signal(SIGTERM);
  EXPECT_THAT(child.ReadUntil("abandoned\n"), HasSubstr("0 open calls answered, 1 abandoned"));
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(call.result.get().error_code(), grpc::UNAVAILABLE);
}

TEST(Stowaged, ADrainWaitsForAPlan) {
  std::vector<std::string> command = FreePorts();
  command.emplace_back(
      "--drain_timeout=150s");  // under a sanitizer the solve takes most of a minute
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  // A solve of some seconds.
  OpenCall call(address, TableRequest(900, 600));
  ASSERT_TRUE(Solves(metrics));
  child.Signal(SIGTERM);
  EXPECT_THAT(child.ReadUntil("\n"), HasSubstr("draining"));
  EXPECT_EQ(call.result.wait_for(seconds(0)), std::future_status::timeout);
  EXPECT_EQ(child.Wait(seconds(180)), 0);
  EXPECT_THAT(child.ReadUntil("abandoned\n"), HasSubstr("1 open calls answered, 0 abandoned"));
  const grpc::Status status = call.result.get();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(call.response.plan().status(), v1::PLAN_STATUS_FOUND);
  EXPECT_EQ(call.response.source(), v1::PLAN_SOURCE_SOLVED);
}

// A client of plain gRPC, which knows nothing of health: its connection says so, at once.
TEST(Stowaged, ADrainSendsNewCallsElsewhereWhileOpenOnesGoOn) {
  ChildProcess child(FreePorts());
  const auto [address, metrics] = Ready(&child);
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  ASSERT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + seconds(20)));
  OpenCall call(channel, EndlessRequest());
  ASSERT_TRUE(Solves(metrics));
  child.Signal(SIGTERM);
  EXPECT_TRUE(channel->WaitForStateChange(GRPC_CHANNEL_READY,
                                          std::chrono::system_clock::now() + seconds(20)));
  EXPECT_EQ(call.result.wait_for(seconds(0)), std::future_status::timeout) << "it goes on";
  call.context.TryCancel();
  EXPECT_EQ(child.Wait(), 0);
}

// A watch of health has no end.
TEST(Stowaged, WhoOnlyWatchesHoldsUpNoDrain) {
  std::vector<std::string> command = FreePorts();
  command.emplace_back("--drain_timeout=16s");
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  const auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  auto watch = std::async(std::launch::async, [&channel] {
    grpc::ByteBuffer first;
    return RawCall(channel, "/grpc.health.v1.Health/Watch", "", &first, seconds(10));
  });
  ASSERT_EQ(watch.wait_for(milliseconds(500)), std::future_status::timeout);
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(seconds(8)), 0) << "half of --drain_timeout";
}

TEST(Stowaged, AHangUpEndsNothing) {
  ChildProcess child(FreePorts());
  const auto [address, metrics] = Ready(&child);
  child.Signal(SIGHUP);
  v1::GetCapabilitiesResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(Connect(address)->GetCapabilities(&context, {}, &response).ok());
  child.Signal(SIGTERM);
  EXPECT_THAT(child.ReadUntil("\n"), HasSubstr("SIGTERM: draining"));
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, ADrainEndsWhenTheLastOpenCallIsCancelled) {
  ChildProcess child(FreePorts());
  const auto [address, metrics] = Ready(&child);
  OpenCall call(address, EndlessRequest());
  ASSERT_TRUE(Solves(metrics));
  child.Signal(SIGTERM);
  EXPECT_THAT(child.ReadUntil("\n"), HasSubstr("draining"));
  call.context.TryCancel();
  EXPECT_THAT(child.ReadUntil("abandoned\n"), HasSubstr("1 open calls answered, 0 abandoned"));
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, AFlagBoundsASolveOfACallWithoutADeadline) {
  std::vector<std::string> command = FreePorts();
  command.emplace_back("--max_solve_time=300ms");
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  OpenCall call(address, EndlessRequest());
  ASSERT_EQ(call.result.wait_for(seconds(10)), std::future_status::ready);
  const grpc::Status status = call.result.get();
  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("within 0.3 s"));
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, AFlagBoundsTheMemoryOfASolve) {
  std::vector<std::string> command = FreePorts();
  command.emplace_back("--solver_memory_bytes=1048576");
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  OpenCall call(address, TableRequest(900, 600));
  ASSERT_EQ(call.result.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(call.result.get().error_code(), grpc::RESOURCE_EXHAUSTED);
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, AFlagBoundsTheVerticesOfAGraph) {
  std::vector<std::string> command = FreePorts();
  command.emplace_back("--max_vertices=5");
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  v1::ComputePlanRequest request;
  *request.mutable_profile() = ToProto(GraphProfile(20, 0, 1));
  request.mutable_budget()->set_bytes(100000);
  v1::ComputePlanResponse response;
  grpc::ClientContext context;
  const grpc::Status status = Connect(address)->ComputePlan(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("must have at most 5 on this server"));
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(Stowaged, ASecondSignalEndsItAtOnce) {
  ChildProcess child(FreePorts());
  const auto [address, metrics] = Ready(&child);
  OpenCall call(address, EndlessRequest());
  ASSERT_TRUE(Solves(metrics));
  child.Signal(SIGTERM);
  EXPECT_THAT(child.ReadUntil("\n"), HasSubstr("draining"));
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(seconds(15)), 128 + SIGTERM) << "half of --drain_timeout";
  EXPECT_FALSE(call.result.get().ok());
}

// Libraries have something to say about every such request. Were it said on the call's thread, the
// pipe, of which nobody reads, would soon hold them all up.
TEST(Stowaged, BadTextOfManyCallersHoldsNobodyUp) {
  ChildProcess child(Command({kFreePorts[0], kFreePorts[1]}));
  const auto channel = grpc::CreateChannel(Ready(&child).first, grpc::InsecureChannelCredentials());
  v1::ComputePlanRequest request = TableRequest(3, 100);
  request.mutable_profile()->mutable_chain()->mutable_stages(0)->set_op_kind("kind");
  const std::string good = request.SerializeAsString();
  std::string bad = good;
  bad[bad.find("kind")] = '\xff';
  grpc::ByteBuffer response;
  for (int i = 0; i < 1000; ++i) {
    const grpc::Status refused =
        RawCall(channel, "/stowage.v1.PlanService/ComputePlan", bad, &response);
    ASSERT_FALSE(refused.ok());
    ASSERT_NE(refused.error_code(), grpc::DEADLINE_EXCEEDED);
  }
  const grpc::Status status =
      RawCall(channel, "/stowage.v1.PlanService/ComputePlan", good, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(Stowaged, HelpListsEveryFlag) {
  ChildProcess child(Command({"--help"}));
  const std::string help = child.ReadUntil("no such text");
  for (const char* flag : {"listen", "metrics_listen", "solver_threads", "queue_limit",
                           "solver_memory_bytes", "max_solve_time", "max_open_calls", "cache_bytes",
                           "max_message_bytes", "max_stages", "max_vertices", "drain_timeout"}) {
    EXPECT_THAT(help, HasSubstr(std::string("--") + flag + "="));
  }
  EXPECT_EQ(child.Wait(), 0);
}

struct BadFlag {
  const char* argument;
  const char* says;
};

class StowagedBadFlags : public ::testing::TestWithParam<BadFlag> {};

TEST_P(StowagedBadFlags, EndsWithCode2AndSaysWhy) {
  ChildProcess child(Command({GetParam().argument}));
  EXPECT_THAT(child.ReadUntil("lists the flags\n"), HasSubstr(GetParam().says));
  EXPECT_EQ(child.Wait(), 2);
}

INSTANTIATE_TEST_SUITE_P(
    Flags, StowagedBadFlags,
    ::testing::Values(BadFlag{"--no_such_flag=1", "unknown argument --no_such_flag=1"},
                      BadFlag{"word", "unknown argument word"},
                      BadFlag{"--help_me", "unknown argument"},
                      BadFlag{"--listen", "--listen: value missing"},
                      BadFlag{"--listen=nowhere", "--listen=nowhere: must be HOST:PORT"},
                      BadFlag{"--listen=127.0.0.1:70000", "port in [0, 65535]"},
                      BadFlag{"--listen=unix:", "unix socket must have 1 to 107 bytes"},
                      BadFlag{"--metrics_listen=7071", "--metrics_listen=7071: must be HOST:PORT"},
                      BadFlag{"--solver_threads=-1", "must be in [0, 1024]"},
                      BadFlag{"--queue_limit=0", "must be in [1, 1000000]"},
                      BadFlag{"--queue_limit=many", "--queue_limit=many"},
                      BadFlag{"--cache_bytes=1", "--cache_bytes=1: must be in"},
                      BadFlag{"--solver_memory_bytes=1", "--solver_memory_bytes=1: must be in"},
                      BadFlag{"--max_solve_time=0", "--max_solve_time=0: must be in [1ms, 24h]"},
                      BadFlag{"--max_open_calls=0", "--max_open_calls=0: must be in [1,"},
                      BadFlag{"--max_message_bytes=1", "--max_message_bytes=1: must be in"},
                      BadFlag{"--otlp_endpoint=here",
                              "must be HOST:PORT, https://HOST:PORT or unix:PATH"},
                      BadFlag{"--otlp_ca=/no/such/file", "needs --otlp_endpoint=https://"},
                      BadFlag{"--trace_share=2", "--trace_share=2: must be in [0, 1]"},
                      BadFlag{"--max_stages=100001", "must be in [1, 100000]"},
                      BadFlag{"--max_vertices=0", "must be in [1, 1000000]"},
                      BadFlag{"--drain_timeout=-1s", "--drain_timeout=-1s: must be in [0, 24h]"},
                      BadFlag{"--drain_timeout=soon", "--drain_timeout=soon"}));

TEST(Stowaged, SpansOfTheLastCallsAreSentBeforeItEnds) {
  TraceSink sink;
  std::vector<std::string> command = FreePorts();
  command.push_back("--otlp_endpoint=" + sink.address());
  command.emplace_back("--trace_share=1");
  ChildProcess child(command);
  const auto [address, metrics] = Ready(&child);
  grpc::ClientContext context;
  v1::GetCapabilitiesResponse response;
  ASSERT_TRUE(Connect(address)->GetCapabilities(&context, {}, &response).ok());
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(sink.service(), "stowaged");
  const std::vector<TraceSink::Span> spans = sink.spans();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].name(), "stowage.v1.PlanService/GetCapabilities");
}

TEST(Stowaged, APortInUseIsSaidAndEndsWithCode1) {
  ChildProcess child(FreePorts());
  const auto [address, metrics] = Ready(&child);
  ChildProcess same_port(Command({"--listen=" + address, "--metrics_listen="}));
  EXPECT_THAT(same_port.ReadUntil("not valid\n"),
              HasSubstr("cannot listen on " + address + ": port in use"));
  EXPECT_EQ(same_port.Wait(), 1);
  ChildProcess same_metrics(Command({"--listen=127.0.0.1:0", "--metrics_listen=" + metrics}));
  EXPECT_THAT(same_metrics.ReadUntil("not valid"),
              HasSubstr("cannot serve metrics on " + metrics + ": port in use"));
  EXPECT_EQ(same_metrics.Wait(), 1);
  child.Signal(SIGTERM);
  EXPECT_EQ(child.Wait(), 0);
}

}  // namespace
}  // namespace stowage::testing
