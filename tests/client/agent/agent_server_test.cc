// The agent against a real stowaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/agent/agent.h"
#include "client/rpc/connect.h"
#include "client/torch/offload/device_use.h"
#include "proto/otlp/otlp_exporter.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/test_networks.h"
#include "tests/proto/trace_sink.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using ::testing::Contains;
using ::testing::Not;

class AgentServerTest : public ::testing::TestWithParam<std::string> {
 protected:
  AgentServerTest() {
    options_.device = device_.execution;
    options_.server.address = server_.address();
    options_.report_after = 2;
    options_.on_event = [this](const AgentEvent& event) { kinds_.push_back(KindOf(event)); };
  }

  void SetUp() override { SKIP_IF_MISSING(device_); }

  TestNetwork Network() const { return MakeTestNetwork("norm_mlp", device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
  StowagedProcess server_;
  AgentOptions options_;
  std::vector<std::string> kinds_;
};

TEST_P(AgentServerTest, OneJobPlansTheNextHitsAndBothReport) {
  options_.job = "first";
  TestNetwork one = Network();
  Agent first(&one.model, options_);
  const auto solved = first.Plan(one.input, one.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(solved->source, PlanSource::kSolved);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(first.Step(one.input, one.target).ok());
  WaitFor(device_.device);  // with the next call it is known what they took
  EXPECT_EQ(first.events().of<ReportSentEvent>(), 1);

  kinds_.clear();
  options_.job = "second";
  TestNetwork two = Network();
  Agent second(&two.model, options_);
  const auto cached = second.Resume(first.Token(), {{two.input}, two.target});
  ASSERT_TRUE(cached.ok()) << cached.status();
  EXPECT_EQ(cached->source, PlanSource::kCache);
  EXPECT_EQ(cached->digest, solved->digest);
  EXPECT_EQ(second.events().of<ResumedEvent>(), 1);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(second.Step(two.input, two.target).ok());
  WaitFor(device_.device);
  EXPECT_EQ(second.events().of<ReportSentEvent>(), 1);
  EXPECT_THAT(kinds_, Not(Contains("planned")));
}

// From a step of the training loop, over the agent's request, to the server's solver thread.
TEST_P(AgentServerTest, OneTraceGoesFromAStepToTheSolver) {
  testing::TraceSink sink;
  StowagedProcess server({"--otlp_endpoint=" + sink.address()});
  options_.server.address = server.address();
  {
    OtlpOptions to_sink;
    to_sink.endpoint = sink.address();
    to_sink.service_name = "trainer";
    OtlpExporter exporter(to_sink);
    Span step = Span::Root(&exporter, "step", SpanKind::kInternal);
    options_.tracer = &exporter;
    options_.traceparent = [&step] { return FormatTraceparent(step.context()); };
    options_.budget = ShareOfStoreAll{0.7};
    TestNetwork network = Network();
    Agent agent(&network.model, options_);
    ASSERT_TRUE(agent.Step(network.input, network.target).ok());
    step.End();
    // What ends waits for its spans no longer than a second.
    for (const char* name :
         {"solve", "stowage.v1.PlanService/ComputePlan", "stowage.plan", "step"}) {
      EXPECT_TRUE(sink.WaitFor(name)) << name;
    }
    EXPECT_EQ(server.Stop(), 0);
  }
  const std::vector<testing::TraceSink::Span> spans = sink.spans();
  const auto named = [&spans](const std::string& name) {
    for (const testing::TraceSink::Span& span : spans) {
      if (span.name() == name) return span;
    }
    ADD_FAILURE() << "no span " << name;
    return testing::TraceSink::Span();
  };
  const testing::TraceSink::Span solve = named("solve");
  const testing::TraceSink::Span call = named("stowage.v1.PlanService/ComputePlan");
  const testing::TraceSink::Span plan = named("stowage.plan");
  const testing::TraceSink::Span step = named("step");
  EXPECT_EQ(solve.parent_span_id(), call.span_id());
  EXPECT_EQ(call.parent_span_id(), plan.span_id());
  EXPECT_EQ(plan.parent_span_id(), step.span_id());
  for (const testing::TraceSink::Span& span : spans) {
    EXPECT_EQ(span.trace_id(), step.trace_id()) << span.name();
  }
}

TEST_P(AgentServerTest, WithoutTheServerItPlansHereAndSaysSo) {
  server_.Kill();
  options_.retry.max_attempts = 1;
  TestNetwork network = Network();
  Agent agent(&network.model, options_);
  const auto adopted = agent.Plan(network.input, network.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->source, PlanSource::kLocal);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(agent.Step(network.input, network.target).ok());
  EXPECT_EQ(agent.events().of<FellBackEvent>(), 1);
  EXPECT_EQ(agent.events().of<ReportSentEvent>() + agent.events().of<ReportRefusedEvent>(), 0);
}

// Jobs report that steps take longer than was predicted; a job that trains on measures anew, and the wish ends.
TEST_P(AgentServerTest, AJobAnswersTheWishForAProfileByItself) {
  options_.report_after = 0;
  options_.drift.replans = 0;
  options_.wanted_profile_every = 3;
  options_.job = "training";
  TestNetwork network = Network();
  Agent agent(&network.model, options_);
  const auto adopted = agent.Plan(network.input, network.target, ShareOfStoreAll{0.7});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  const auto others = Connect(options_.server, {});
  const auto wanted = [&] {
    const auto reply = others->GetPlan({adopted->key}, adopted->plan.budget,
                                       CallOptions::Within(std::chrono::seconds(10)));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() && reply->profile_wanted;
  };
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(agent.Step(network.input, network.target).ok());
  EXPECT_FALSE(wanted());
  EXPECT_THAT(kinds_, Not(Contains("replan")));
  for (const char* job : {"one", "two", "three", "four"}) {
    ExecutionMeasurement took;
    took.key = adopted->key;
    took.plan_digest = adopted->digest;
    took.revision = adopted->plan.revision;
    took.budget = adopted->plan.budget;
    took.steps = 20;
    took.step_time = Nanos(adopted->plan.prediction.makespan.value() * 2);
    took.peak = adopted->plan.prediction.peak;
    CallOptions call = CallOptions::Within(std::chrono::seconds(10));
    call.job = job;
    ASSERT_TRUE(others->ReportExecution(took, call).ok());
  }
  ASSERT_TRUE(wanted());
  kinds_.clear();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(agent.Step(network.input, network.target).ok());
  EXPECT_THAT(kinds_, Contains("replan"));
  EXPECT_THAT(kinds_, Contains("profile_taken"));
  EXPECT_THAT(kinds_, Not(Contains("plan_failed")));
  // The server learns in the background.
  for (int i = 0; i < 200 && wanted(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_FALSE(wanted());
  EXPECT_TRUE(agent.Step(network.input, network.target).ok());
}

INSTANTIATE_TEST_SUITE_P(On, AgentServerTest, ::testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
