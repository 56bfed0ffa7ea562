#include "solvers/viz/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "solvers/schedule/instance.h"
#include "tests/solvers/base/json_reader.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_communication.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/viz/report_sample.h"

namespace stowage {
namespace {

using testing::Json;
using testing::ReadJson;

// A whole number of nanoseconds, of what is written in microseconds.
int64_t NanosOf(const Json& microseconds) {
  EXPECT_EQ(microseconds.kind, Json::Kind::kNumber);
  const size_t dot = microseconds.text.find('.');
  EXPECT_EQ(microseconds.text.size(), dot + 4) << microseconds.text;
  return std::llround(microseconds.number * 1e3);
}

// By process and thread.
using Slices = std::map<std::pair<int, int>, std::vector<Json>>;

// Checks what every trace keeps: threads are named, and their events in order, one after the other.
Slices Check(const Json& trace) {
  Slices slices;
  std::map<std::pair<int, int>, std::string> threads;
  std::map<int, int64_t> counted;
  for (const Json& event : trace["traceEvents"].list) {
    const int process = static_cast<int>(event["pid"].number);
    const std::pair<int, int> thread{process, static_cast<int>(event["tid"].number)};
    const std::string phase = event["ph"].text;
    EXPECT_TRUE(event.has("tid")) << "readers make up a thread where there is none";
    if (phase == "M") {
      if (event["name"].text == "thread_name") threads[thread] = event["args"]["name"].text;
    } else if (phase == "C") {
      EXPECT_LE(counted[process], NanosOf(event["ts"]));
      counted[process] = NanosOf(event["ts"]);
      for (const auto& [name, value] : event["args"].object) EXPECT_GE(value.number, 0) << name;
    } else {
      EXPECT_TRUE(phase == "X" || phase == "i") << phase;
      EXPECT_EQ(threads.count(thread), 1u);
      slices[thread].push_back(event);
    }
  }
  for (const auto& [thread, events] : slices) {
    int64_t end = 0;
    for (const Json& event : events) {
      EXPECT_LE(end, NanosOf(event["ts"])) << event["name"].text;
      end = NanosOf(event["ts"]) + (event.has("dur") ? NanosOf(event["dur"]) : 0);
    }
  }
  return slices;
}

TEST(ChromeTrace, IsAsItWas) {
  const std::string trace =
      ChromeTrace(testing::SampleProblem().problem(), testing::SampleDrawn(true));
  std::ifstream in(std::string(STOWAGE_SOURCE_DIR) + "/tests/solvers/viz/sample_trace.json");
  const std::string golden((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(trace, golden);
}

TEST(ChromeTrace, HasStreamsAsThreadsAndTheMeasuredStepBeside) {
  const DrawnPlan plan = testing::SampleDrawn(true);
  const std::optional<Json> trace = ReadJson(ChromeTrace(testing::SampleProblem().problem(), plan));
  ASSERT_TRUE(trace);
  const Slices slices = Check(*trace);
  ASSERT_EQ(slices.size(), 4u);  // compute, both directions; measured compute
  EXPECT_EQ(slices.at({1, 1}).size(), plan.plan.schedule.size() - 2);
  EXPECT_EQ(slices.at({1, 2}).size(), 1u);
  EXPECT_EQ(slices.at({1, 3}).size(), 1u);
  EXPECT_EQ(slices.at({2, 1}).size(), plan.plan.schedule.size());
  const Json& last = slices.at({1, 1}).back();
  EXPECT_EQ(NanosOf(last["ts"]) + NanosOf(last["dur"]), plan.step.simulation.makespan.value());
  EXPECT_EQ((*trace)["otherData"]["network"].text, "sample \"net\"");
  EXPECT_EQ(slices.at({1, 1})[1]["name"].text, "forward </script><b>'\"&, saving");
}

TEST(ChromeTrace, CountersReachThePeakAndHaveEveryUseThatThereIs) {
  const DrawnPlan plan = testing::SampleDrawn(false);
  const std::optional<Json> trace = ReadJson(ChromeTrace(testing::SampleProblem().problem(), plan));
  ASSERT_TRUE(trace);
  double peak = 0;
  std::set<std::string> uses;
  for (const Json& event : (*trace)["traceEvents"].list) {
    if (event["ph"].text != "C" || event["name"].text != "memory") continue;
    EXPECT_EQ(event["args"].object.size(), kMemoryUses - 1);
    double sum = 0;
    for (const auto& [name, bytes] : event["args"].object) {
      sum += bytes.number;
      if (bytes.number > 0) uses.insert(name);
    }
    peak = std::max(peak, sum);
  }
  EXPECT_EQ(peak, static_cast<double>(plan.step.simulation.peak.value()));
  EXPECT_EQ(uses.size(), kMemoryUses - 1) << "nothing communicates here";
}

// By time, the last one said of it; of one process.
std::map<int64_t, double> TotalMemory(const Json& trace, int process) {
  std::map<int64_t, double> totals;
  for (const Json& event : trace["traceEvents"].list) {
    if (event["ph"].text != "C" || event["name"].text != "total memory") continue;
    if (event["pid"].number == process) {
      totals[NanosOf(event["ts"])] = event["args"]["bytes"].number;
    }
  }
  return totals;
}

// Readers that draw each number of a counter by itself show no sum that nobody says.
TEST(ChromeTrace, BothProcessesCountTheirTotalMemory) {
  const DrawnPlan plan = testing::SampleDrawn(true);
  const std::optional<Json> trace = ReadJson(ChromeTrace(testing::SampleProblem().problem(), plan));
  ASSERT_TRUE(trace);
  std::map<int64_t, double> uses, measured;
  for (const Json& event : (*trace)["traceEvents"].list) {
    if (event["ph"].text != "C" || event["name"].text != "memory") continue;
    double& sum = uses[NanosOf(event["ts"])] = 0;
    for (const auto& [name, bytes] : event["args"].object) sum += bytes.number;
  }
  EXPECT_GT(uses.size(), 10U);
  EXPECT_EQ(TotalMemory(*trace, 1), uses);
  for (const MeasuredInstruction& i : plan.measured->instructions) {
    measured[i.start.value()] = static_cast<double>(i.peak.value());
    measured[i.end.value()] = static_cast<double>(i.held_after.value());
  }
  EXPECT_EQ(TotalMemory(*trace, 2), measured);
}

// Perfetto shows escapes or refuses them, and Chrome's viewer nests what it has rounded to the unit.
TEST(ChromeTrace, IsWhatItsReadersTake) {
  const std::string rocket = "\xF0\x9F\x9A\x80";
  ChainSpec spec;
  spec.stages.resize(1);
  spec.stages[0].name = rocket + " caf\xC3\xA9 <b>";
  spec.stages[0].forward_time = Nanos(10);
  const absl::StatusOr<Chain> named = Chain::Create(spec);
  ASSERT_TRUE(named.ok()) << named.status();
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = StoreAllSchedule(*named);
  const absl::StatusOr<DrawnPlan> drawn = DrawPlan({*named, std::nullopt}, "", plan);
  ASSERT_TRUE(drawn.ok()) << drawn.status();
  const std::string trace = ChromeTrace(*named, *drawn);
  EXPECT_THAT(trace, ::testing::HasSubstr("forward " + spec.stages[0].name + ", saving\""));
  EXPECT_THAT(trace, ::testing::Not(::testing::HasSubstr("\\u")));
  EXPECT_THAT(trace, ::testing::HasSubstr("\"displayTimeUnit\":\"ns\""));
}

TEST(ChromeTrace, OfRandomPlansNestsAndGoesOn) {
  std::mt19937_64 rng(6);
  for (int i = 0; i < 100; ++i) {
    const Chain plain = testing::RandomChain(2 + i % 6, testing::VariedOptions(i), &rng);
    const TransferModel transfers = testing::RandomTransferModel(&rng);
    Plan plan;
    plan.status = PlanStatus::kFound;
    plan.schedule = testing::RandomSchedule(plain, &rng);
    const Chain chain = testing::WithCollectives(plain, plan.schedule, &rng);
    plan.schedule = testing::WithRandomTransfers(chain, plan.schedule, transfers, &rng);
    plan.schedule = testing::WithRandomCommunication(chain, plan.schedule, &rng);
    const absl::StatusOr<DrawnPlan> drawn = DrawPlan({chain, transfers}, "", plan);
    ASSERT_TRUE(drawn.ok()) << drawn.status();
    const std::optional<Json> trace = ReadJson(ChromeTrace(chain, *drawn));
    ASSERT_TRUE(trace);
    Check(*trace);
  }
}

TEST(DrawnPlan, IsOfAPlanThatWasFoundAndOfItsMeasuredStep) {
  Plan plan = testing::SamplePlan();
  plan.status = PlanStatus::kNotFound;
  EXPECT_THAT(std::string(DrawPlan(testing::SampleProblem(), "", plan).status().message()),
              ::testing::HasSubstr("plan.status"));
  MeasuredStep other = testing::SampleMeasured();
  other.schedule = ScheduleDigest({});
  EXPECT_EQ(DrawPlan(testing::SampleProblem(), "", testing::SamplePlan(), other).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace stowage
