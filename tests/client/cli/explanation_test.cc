#include "client/cli/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/profile_file.h"
#include "client/rpc/local_connection.h"
#include "solvers/planner.h"
#include "tests/client/cli/stowage_command.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

Profile Read(const std::string& file) { return ReadProfile(Data(file)).value(); }

// With a link to host memory, at the speed of PCIe 3.
Profile Linked(const std::string& file) {
  Profile profile = Read(file);
  profile.device.host_memory = Bytes(int64_t{64} << 30);
  profile.device.to_host_bytes_per_second = 12200000000;
  profile.device.to_device_bytes_per_second = 12200000000;
  profile.device.duplex = Duplex::kFull;
  return profile;
}

PlanReply PlanOf(const Profile& profile, double share, const std::string& solver = "") {
  KeyOptions key;
  key.solver = solver;
  return MakeLocalConnection()
      ->ComputePlan(profile, ShareOfStoreAll{share}, key, CallOptions())
      .value();
}

// What is said of the stages adds up to what the evaluator says of the step.
void ExpectAddsUp(const Profile& profile, const PlanReply& reply) {
  const absl::StatusOr<Explanation> explanation = Explain(InstanceOf(profile, false), reply);
  ASSERT_TRUE(explanation.ok()) << explanation.status();
  const Simulation& step = reply.plan.prediction;
  Nanos recomputing, waiting;
  Bytes offloaded, prefetched;
  int again = 0;
  for (const StageFate& fate : explanation->stages) {
    recomputing += fate.use.recompute_time;
    waiting += fate.waited;
    offloaded += fate.use.offloaded;
    prefetched += fate.use.prefetched;
    if (fate.stage > 0) again += fate.use.forwards - 1;
  }
  EXPECT_EQ(recomputing, step.recompute_time);
  EXPECT_EQ(waiting, step.idle_time);
  EXPECT_EQ(offloaded, step.offloaded);
  EXPECT_EQ(prefetched, step.prefetched);
  EXPECT_EQ(again, step.recomputed_forwards);
  EXPECT_EQ(explanation->peak.memory.total(), step.peak);
  EXPECT_LE(explanation->peak.at, step.makespan);
}

TEST(Explanation, AddsUpToTheStep) {
  for (const char* file :
       {"chain_resnet50.json", "chain_rand_L50_s1.json", "graph_resnet50.json"}) {
    for (const double share : {0.4, 0.6, 0.9, 1.0}) {
      SCOPED_TRACE(testing::Message() << file << " " << share);
      const Profile profile = Read(file);
      ExpectAddsUp(profile, PlanOf(profile, share));
    }
  }
  const Profile instance = Linked("chain_resnet50.json");
  const PlanReply offloads = PlanOf(instance, 0.4, "offload_greedy");
  ASSERT_EQ(offloads.plan.status, PlanStatus::kFound);
  ASSERT_GT(offloads.plan.prediction.idle_time, Nanos(0));
  ExpectAddsUp(instance, offloads);
  EXPECT_EQ(Explain(InstanceOf(instance, false), offloads).value().stages.front().label, "input")
      << "the input of a chain goes to the host, too";
  ExpectAddsUp(instance, PlanOf(instance, 0.4, "joint"));
}

TEST(Explanation, SaysWhatHappensToEachStage) {
  const Profile profile = Read("chain_resnet50.json");
  const PlanReply reply = PlanOf(profile, 0.5);
  const Explanation explanation = Explain(InstanceOf(profile, false), reply).value();
  const std::string text = ToText(explanation);
  for (const char* part : {"peak at", "into the step", "extra time", "recompute", "keep"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const Chain& chain = std::get<Chain>(profile.problem);
  ASSERT_EQ(explanation.stages.size(), static_cast<size_t>(chain.length()) + 1);
  for (const StageFate& fate : explanation.stages) {
    EXPECT_EQ(fate.saved, chain.stage(fate.stage).saved);
    EXPECT_EQ(fate.use.forward_time.value(),
              chain.stage(fate.stage).forward_time.value() * fate.use.forwards);
    EXPECT_EQ(fate.use.role == StageRole::kRecompute, fate.use.forwards > 1);
  }
}

TEST(Explanation, OfABudgetThatNothingFitsHasOnlyWhatWould) {
  const Profile profile = Read("chain_resnet50.json");
  PlanReply reply = PlanOf(profile, 0.01);
  ASSERT_EQ(reply.plan.status, PlanStatus::kProvenInfeasible);
  Explanation explanation = Explain(InstanceOf(profile, false), reply).value();
  FindNeighbours({{Bytes(500), Nanos(9), Bytes(400)},
                  {reply.plan.bounds.least_budget, Nanos(8), reply.plan.bounds.least_budget}},
                 &explanation);
  EXPECT_FALSE(explanation.less.has_value());
  ASSERT_TRUE(explanation.more.has_value());
  EXPECT_EQ(explanation.more->makespan, Nanos(8));
  EXPECT_THAT(ToText(explanation), HasSubstr("more memory"));
  EXPECT_THAT(ToJson(explanation), HasSubstr("\"with_less\": null"));
}

// Against the definition: less memory and slower, the one that takes most of that; faster, the one that
// takes least.
TEST(Explanation, NeighboursAreTheNearestPoints) {
  const Profile profile = Read("chain_resnet50.json");
  const FrontierReply frontier =
      MakeLocalConnection()->GetFrontier(profile, KeyOptions(), 0, CallOptions()).value();
  ASSERT_GT(frontier.points.size(), 5u);
  for (const double share : {0.4, 0.5, 0.7, 1.0}) {
    Explanation explanation;
    explanation.plan = PlanOf(profile, share).plan;
    const Plan& plan = explanation.plan;
    FindNeighbours(frontier.points, &explanation);
    std::optional<Bytes> less, more;
    for (const FrontierReply::Point& point : frontier.points) {
      if (point.peak < plan.prediction.peak && point.makespan > plan.prediction.makespan) {
        less = std::max(less.value_or(Bytes(0)), point.budget);
      }
      if (point.budget > plan.budget && point.makespan < plan.prediction.makespan) {
        more = std::min(more.value_or(point.budget), point.budget);
      }
    }
    EXPECT_EQ(explanation.less.has_value(), less.has_value());
    EXPECT_EQ(explanation.more.has_value(), more.has_value());
    if (less) {
      EXPECT_EQ(explanation.less->budget, *less);
    }
    if (more) {
      EXPECT_EQ(explanation.more->budget, *more);
    }
  }
}

}  // namespace
}  // namespace stowage
