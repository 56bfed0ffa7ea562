#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agent_event.h"
#include "client/agent/agent_options.h"
#include "client/agent/batch.h"
#include "client/agent/out_of_memory.h"
#include "client/agent/plan_table.h"
#include "client/agent/plan_token.h"
#include "client/agent/step_watch.h"
#include "solvers/model/field_error.h"
#include "tests/client/agent/some_tensors.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

TEST(AgentOptionsTest, DefaultsHold) {
  const AgentOptions options;
  EXPECT_TRUE(CheckAgentOptions(options).ok());
}

TEST(AgentOptionsTest, EveryViolationNamesFieldValueAndRule) {
  const std::pair<const char*, std::function<void(AgentOptions*)>> cases[] = {
      {"options.retry.max_attempts = 0", [](AgentOptions* o) { o->retry.max_attempts = 0; }},
      {"options.plan_timeout = -1",
       [](AgentOptions* o) { o->plan_timeout = std::chrono::milliseconds(-1); }},
      {"options.report_timeout = 0",
       [](AgentOptions* o) { o->report_timeout = std::chrono::milliseconds(0); }},
      {"options.job", [](AgentOptions* o) { o->job = std::string(129, 'x'); }},
      {"options.profile.warmup = -1", [](AgentOptions* o) { o->profile.warmup = -1; }},
      {"options.profile.repeats = 0", [](AgentOptions* o) { o->profile.repeats = 0; }},
      {"options.profile.bytes_only", [](AgentOptions* o) { o->profile.bytes_only = true; }},
      {"options.first_repeats = 0", [](AgentOptions* o) { o->first_repeats = 0; }},
      {"budget", [](AgentOptions* o) { o->budget = ShareOfStoreAll{1.5}; }},
      {"options.device_limit.memory = 0", [](AgentOptions* o) { o->device_limit = DeviceLimit(); }},
      {"options.device_limit.reserve = 1",
       [](AgentOptions* o) {
         o->device_limit = DeviceLimit();
         o->device_limit->memory = Bytes(1000);
         o->device_limit->reserve = 1;
       }},
      {"options.device_limit.other = -1",
       [](AgentOptions* o) {
         o->device_limit = DeviceLimit();
         o->device_limit->memory = Bytes(1000);
         o->device_limit->other = Bytes(-1);
       }},
      {"options.budget = ",
       [](AgentOptions* o) {
         o->budget = Bytes(1);
         o->device_limit = DeviceLimit();
         o->device_limit->memory = Bytes(1000);
       }},
      {"options.max_shapes = 0", [](AgentOptions* o) { o->max_shapes = 0; }},
      {"options.steps_by_larger = -1", [](AgentOptions* o) { o->steps_by_larger = -1; }},
      {"options.report_after = -1", [](AgentOptions* o) { o->report_after = -1; }},
      {"options.drift.window = 0", [](AgentOptions* o) { o->drift.window = 0; }},
      {"options.drift.time = nan",
       [](AgentOptions* o) { o->drift.time = std::numeric_limits<double>::quiet_NaN(); }},
      {"options.drift.peak = -0.1", [](AgentOptions* o) { o->drift.peak = -0.1; }},
      {"options.drift.replans = -1", [](AgentOptions* o) { o->drift.replans = -1; }},
      {"options.out_of_memory.factor = 1", [](AgentOptions* o) { o->out_of_memory.factor = 1; }},
      {"options.out_of_memory.tries = -1", [](AgentOptions* o) { o->out_of_memory.tries = -1; }},
      {"options.out_of_memory.retry_step",
       [](AgentOptions* o) {
         o->out_of_memory.tries = 0;
         o->out_of_memory.retry_step = true;
       }},
      {"options.wanted_profile_every = -1", [](AgentOptions* o) { o->wanted_profile_every = -1; }},
      {"options.shadow_every = 0", [](AgentOptions* o) { o->shadow_every = 0; }},
      {"options.arena = set",
       [](AgentOptions* o) {
         o->arena = ArenaOptions();
         o->device = TrainingDeviceNamed("test").execution;
       }},
      {"token_file", [](AgentOptions* o) {
         o->server.address = "unix:/s";
         o->server.token = "t";
         o->server.token_file = "f";
       }}};
  for (const auto& [message, spoil] : cases) {
    AgentOptions options;
    spoil(&options);
    const absl::Status status = CheckAgentOptions(options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
    EXPECT_TRUE(GetFieldViolation(status)) << message;
  }
}

TEST(AgentEventTest, EveryKindHasWordsOfItsOwn) {
  std::vector<std::pair<AgentEvent, const char*>> events = {
      {BudgetSharedEvent{}, "budget_shared"},
      {ProfileTakenEvent{}, "profile_taken"},
      {CacheHitEvent{}, "cache_hit"},
      {PlannedEvent{}, "planned"},
      {AdoptedEvent{}, "adopted"},
      {FellBackEvent{"words"}, "fell_back"},
      {ReplanEvent{}, "replan"},
      {PlanFailedEvent{}, "plan_failed"},
      {OutOfMemoryEvent{}, "out_of_memory"},
      {CopiesForbiddenEvent{}, "copies_forbidden"},
      {ShadowEvent{}, "shadow"},
      {KilledEvent{}, "killed"},
      {ReportSentEvent{}, "report_sent"},
      {ReportRefusedEvent{}, "report_refused"},
      {ResumedEvent{}, "resumed"},
      {ArenaEvent{}, "arena"}};
  ASSERT_EQ(events.size(), std::variant_size_v<AgentEvent>);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].first.index(), i);
    EXPECT_STREQ(KindOf(events[i].first), events[i].second);
    EXPECT_FALSE(ToString(events[i].first).empty());
  }
  PlannedEvent infeasible;
  infeasible.status = PlanStatus::kProvenInfeasible;
  infeasible.least_budget = Bytes(512);
  EXPECT_THAT(ToString(AgentEvent(infeasible)), HasSubstr("the least is 512 B"));
}

TEST(PlanToken, IsReadAsItWasWritten) {
  PlanToken token;
  token.key.digest = Sha256("key");
  token.plan = Sha256("plan");
  token.budget = Bytes(123456789);
  const std::string text = ToString(token);
  const absl::StatusOr<PlanToken> read = ParsePlanToken(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->key, token.key);
  EXPECT_EQ(read->plan, token.plan);
  EXPECT_EQ(read->budget, token.budget);
  EXPECT_EQ(read->host_memory, kAllHostMemory);
  for (const int64_t limit : {int64_t{0}, int64_t{4096}}) {
    token.host_memory = Bytes(limit);
    const auto limited = ParsePlanToken(ToString(token));
    ASSERT_TRUE(limited.ok()) << limited.status();
    EXPECT_EQ(limited->host_memory, token.host_memory);
    EXPECT_EQ(limited->budget, token.budget);
  }
  std::string upper = text;
  upper[20] = 'G';
  for (const std::string& bad :
       {std::string(), text + ":", text.substr(1), upper, text + "x",
        text.substr(0, text.rfind(':') + 1) + "-5", text + ":-1", text + ":1:1"}) {
    EXPECT_EQ(ParsePlanToken(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(StepWatch, HasMediansOfTheLatest) {
  StepWatch watch(3);
  const auto add = [&watch](int64_t time, int64_t peak) {
    StepReport report;
    report.wall_time = Nanos(time);
    report.peak = Bytes(peak);
    watch.Add(report);
  };
  for (const int64_t value : {100, 100, 100, 1, 3, 2}) add(value, 10 * value);
  EXPECT_EQ(watch.steps(), 6);
  EXPECT_EQ(watch.MedianTime(6), Nanos(2));
  EXPECT_EQ(watch.MedianPeak(3), Bytes(20));
  EXPECT_EQ(watch.MedianTime(1), Nanos(2));
  watch.Clear();
  EXPECT_EQ(watch.steps(), 0);
  add(7, 8);
  EXPECT_EQ(watch.MedianTime(3), Nanos(7));
}

TEST(StepWatch, SeesDriftAtTheEndOfEachWindow) {
  Simulation predicted;
  predicted.makespan = Nanos(100);
  predicted.peak = Bytes(100);
  DriftOptions options;
  options.window = 2;
  options.time = 0.5;
  options.peak = 0.1;
  const auto drift = [&](int steps, int64_t time, int64_t peak) {
    StepWatch watch(4);
    StepReport report;
    report.wall_time = Nanos(time);
    report.peak = Bytes(peak);
    for (int i = 0; i < steps; ++i) watch.Add(report);
    const std::optional<Drift> found = DriftOf(watch, predicted, options);
    return found ? ToString(found->reason) : "none";
  };
  EXPECT_STREQ(drift(2, 150, 110), "none");
  EXPECT_STREQ(drift(2, 151, 100), "step time");
  EXPECT_STREQ(drift(2, 49, 100), "step time");
  EXPECT_STREQ(drift(2, 151, 111), "peak");
  EXPECT_STREQ(drift(2, 100, 50), "none") << "to take less is no fault";
  EXPECT_STREQ(drift(3, 151, 111), "none") << "in the middle of a window";
  options.peak = 0;
  EXPECT_STREQ(drift(2, 100, 500), "none");
  predicted.makespan = Nanos(0);
  EXPECT_STREQ(drift(4, 100, 100), "none");
}

TEST(OutOfMemory, TheNextBudgetIsBelowWhatThereWas) {
  EXPECT_EQ(SmallerBudget(Bytes(1000), Bytes(950), 0.9), Bytes(855));
  // What the step had got says little of what there is.
  EXPECT_EQ(SmallerBudget(Bytes(1000), Bytes(10), 0.9), Bytes(810));
  EXPECT_EQ(SmallerBudget(Bytes(1000), Bytes(5000), 0.9), Bytes(900));
  EXPECT_EQ(SmallerBudget(Bytes(1), Bytes(1), 0.9), Bytes(1));
  EXPECT_LT(SmallerBudget(Bytes(3), Bytes(3), 0.99), Bytes(3));
}

BatchSignature Signature(std::vector<int64_t> sizes, const std::string& mode = "") {
  return BatchSignature::Of({{torch::zeros(sizes)}, torch::zeros({sizes[0]}, torch::kLong), mode},
                            SomeTensors());
}

TEST(BatchSignatureTest, HasWhatAPlanDependsOn) {
  EXPECT_EQ(Signature({2, 3}).text(), "Float[2,3] -> Long[2] frozen=1");
  EXPECT_EQ(Signature({2, 3}), Signature({2, 3}));
  EXPECT_NE(Signature({2, 3}), Signature({2, 3}, "eval"));
  const Batch batch{{torch::zeros({2}), torch::zeros({3}, torch::kLong)}, at::Tensor()};
  SomeTensors model;
  EXPECT_EQ(BatchSignature::Of(batch, model).text(), "Float[2] Long[3] -> none frozen=1");
  model.trained.set_requires_grad(false);
  EXPECT_EQ(BatchSignature::Of(batch, model).text(), "Float[2] Long[3] -> none frozen=0,1");
}

TEST(BatchSignatureTest, FitsIntoWhatIsNowhereSmaller) {
  EXPECT_TRUE(Signature({2, 3}).FitsInto(Signature({2, 3})));
  EXPECT_TRUE(Signature({2, 3}).FitsInto(Signature({3, 4})));
  EXPECT_FALSE(Signature({2, 5}).FitsInto(Signature({4, 4})));
  EXPECT_FALSE(Signature({2}).FitsInto(Signature({2, 3})));
  EXPECT_FALSE(Signature({2, 3}, "eval").FitsInto(Signature({2, 3})));
}

TEST(PlanTable, IsBoundedAndForgetsTheLongestUnmet) {
  PlanTable table(2, 1);
  table.FindOrAdd(Signature({1, 1}));
  table.FindOrAdd(Signature({2, 1}));
  table.FindOrAdd(Signature({1, 1}));
  table.FindOrAdd(Signature({3, 1}));
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.evicted(), 1);
  EXPECT_EQ(table.Find(Signature({2, 1})), nullptr);
  EXPECT_NE(table.Find(Signature({1, 1})), nullptr);
  // Without a plan to step by, none is larger.
  EXPECT_EQ(table.Larger(Signature({1, 1})), nullptr);
}

}  // namespace
}  // namespace stowage
