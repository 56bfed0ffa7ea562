#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "proto/codec/codec.h"
#include "tests/proto/samples.h"

namespace stowage {
namespace {

using google::protobuf::util::MessageDifferencer;

template <class Message>
void ExpectRoundTrip(const Message& message) {
  const auto value = FromProto(message);
  ASSERT_TRUE(value.ok()) << value.status();
  MessageDifferencer differencer;
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  EXPECT_TRUE(differencer.Compare(message, ToProto(*value))) << differences;
}

template <class Enum>
std::vector<Enum> ValuesOf() {
  std::vector<Enum> values;
  const auto* descriptor = google::protobuf::GetEnumDescriptor<Enum>();
  for (int i = 0; i < descriptor->value_count(); ++i) {
    values.push_back(static_cast<Enum>(descriptor->value(i)->number()));
  }
  return values;
}

TEST(RoundTrip, Chain) { ExpectRoundTrip(SampleChainProfile()); }

TEST(RoundTrip, ChainWithSavedTensors) { ExpectRoundTrip(SampleChainProfileWithSavedTensors()); }

TEST(RoundTrip, ChainWithoutLoss) {
  v1::Profile profile = SampleChainProfile();
  profile.mutable_chain()->clear_loss();
  ExpectRoundTrip(profile);
}

// The key stays that of the structure: what a recompute takes is a cost.
TEST(RoundTrip, RecomputesThatStopEarly) {
  v1::Profile chain = SampleChainProfile();
  chain.mutable_chain()->mutable_stages(0)->set_recompute_saving_time_ns(0);
  chain.mutable_chain()->mutable_stages(0)->set_recompute_saving_overhead_bytes(0);
  chain.mutable_chain()->mutable_stages(1)->set_recompute_saving_time_ns(17);
  ExpectRoundTrip(chain);
  EXPECT_EQ(MakePlanKey(*FromProto(chain), {}), MakePlanKey(*FromProto(SampleChainProfile()), {}));
  v1::Profile graph = SampleGraphProfile();
  graph.mutable_graph()->mutable_vertices(1)->set_recompute_saving_time_ns(23);
  graph.mutable_graph()->mutable_vertices(1)->set_recompute_saving_overhead_bytes(29);
  ExpectRoundTrip(graph);
  EXPECT_EQ(MakePlanKey(*FromProto(graph), {}), MakePlanKey(*FromProto(SampleGraphProfile()), {}));
}

TEST(RoundTrip, Graph) { ExpectRoundTrip(SampleGraphProfile()); }

TEST(RoundTrip, GraphComesBackInProgramOrder) {
  v1::Profile shuffled = SampleGraphProfile();
  auto* vertices = shuffled.mutable_graph()->mutable_vertices();
  std::shuffle(vertices->begin(), vertices->end(), std::mt19937(1));
  ASSERT_NE(vertices->Get(0).id(), SampleGraphProfile().graph().vertices(0).id());
  const auto profile = FromProto(shuffled);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_TRUE(MessageDifferencer::Equals(ToProto(*profile), SampleGraphProfile()));
}

TEST(RoundTrip, EveryEnumValueOfAProfile) {
  for (const auto duplex : ValuesOf<v1::Duplex>()) {
    v1::Profile profile = SampleChainProfile();
    profile.mutable_device()->set_duplex(duplex);
    ExpectRoundTrip(profile);
  }
  for (const auto source : ValuesOf<v1::CostSource>()) {
    v1::Profile profile = SampleChainProfile();
    profile.set_cost_source(source);
    ExpectRoundTrip(profile);
  }
  for (const auto alias : ValuesOf<v1::AliasKind>()) {
    v1::Profile profile = SampleGraphProfile();
    profile.mutable_graph()->mutable_vertices(4)->set_alias(alias);
    ExpectRoundTrip(profile);
  }
}

TEST(RoundTrip, GranularityZeroReadsAsOne) {
  v1::Profile message = SampleChainProfile();
  message.mutable_device()->set_allocation_granularity_bytes(0);
  const auto profile = FromProto(message);
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->device.allocation_granularity, Bytes(1));
}

TEST(RoundTrip, NameReachesTheProblem) {
  const auto chain = FromProto(SampleChainProfile());
  const auto graph = FromProto(SampleGraphProfile());
  const auto dag = FromProto(SampleDagProfile());
  ASSERT_TRUE(chain.ok() && graph.ok() && dag.ok());
  EXPECT_EQ(std::get<Graph>(dag->problem).name(), "sample dag");
  EXPECT_EQ(KindOf(graph->problem), ProblemKind::kGraph);
  EXPECT_EQ(KindOf(dag->problem), ProblemKind::kDag);
  EXPECT_EQ(std::get<Chain>(chain->problem).name(), "sample chain");
  EXPECT_EQ(std::get<Graph>(graph->problem).name(), "sample graph");
}

TEST(RoundTrip, Budget) {
  v1::Budget bytes;
  bytes.set_bytes(0);
  ExpectRoundTrip(bytes);
  v1::Budget share;
  share.set_share_of_store_all(0.6);
  ExpectRoundTrip(share);
  v1::Budget least;
  least.set_least(true);
  ExpectRoundTrip(least);
}

TEST(RoundTrip, PlanFound) { ExpectRoundTrip(SamplePlan()); }

// An older server does not say that its search was complete: that it was is not known.
TEST(RoundTrip, PlanWhoseSearchWasCutShort) {
  v1::Plan plan = SamplePlan();
  ASSERT_TRUE(FromProto(plan)->search_complete);
  plan.clear_search_complete();
  EXPECT_FALSE(FromProto(plan)->search_complete);
  ExpectRoundTrip(plan);
}

TEST(RoundTrip, SampleScheduleHoldsEveryOpTensorAndStream) {
  std::vector<int> ops, tensors, streams;
  const v1::Plan plan = SamplePlan();
  for (const auto& instruction : plan.schedule().instructions()) {
    ops.push_back(instruction.op());
    tensors.push_back(instruction.tensor());
    streams.push_back(instruction.stream());
  }
  for (const auto op : ValuesOf<v1::Op>()) {
    EXPECT_EQ(std::count(ops.begin(), ops.end(), op), op == v1::OP_UNSPECIFIED ? 0 : 1);
  }
  for (const auto tensor : ValuesOf<v1::TensorKind>()) {
    EXPECT_THAT(tensors, testing::Contains(tensor));
  }
  for (const auto stream : ValuesOf<v1::Stream>()) {
    EXPECT_EQ(std::count(streams.begin(), streams.end(), stream) > 0,
              stream != v1::STREAM_UNSPECIFIED);
  }
}

TEST(RoundTrip, PlanWithoutSchedule) {
  for (const auto status : {v1::PLAN_STATUS_PROVEN_INFEASIBLE, v1::PLAN_STATUS_NOT_FOUND}) {
    v1::Plan plan = SamplePlan();
    plan.set_status(status);
    plan.mutable_schedule()->clear_instructions();
    plan.set_digest(ScheduleDigest({}).ToBinary());
    plan.mutable_bounds()->clear_gap();  // of a makespan that there is not
    ExpectRoundTrip(plan);
  }
}

TEST(RoundTrip, TensorThatTheOpDoesNotImplyIsNotLost) {
  v1::Plan message = SamplePlan();
  auto plan = FromProto(message);
  ASSERT_TRUE(plan.ok()) << plan.status();
  plan->schedule[0].tensor = TensorKind::kSaved;
  const auto again = FromProto(ToProto(*plan));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->schedule, plan->schedule);
}

TEST(RoundTrip, PartsOfSavedTensors) {
  auto plan = FromProto(SamplePlan());
  ASSERT_TRUE(plan.ok()) << plan.status();
  for (Instruction& i : plan->schedule) {
    if (IsTransfer(i.op)) i.part = 65535;
  }
  const auto again = FromProto(ToProto(*plan));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->schedule, plan->schedule);
}

TEST(RoundTrip, KeyAndOptions) {
  const PlanKey key{kEncodingVersion, Sha256("anything")};
  const auto read_key = FromProto(ToProto(key));
  ASSERT_TRUE(read_key.ok()) << read_key.status();
  EXPECT_EQ(*read_key, key);

  KeyOptions options;
  options.solver = "store_all";
  options.slots = 1000000;
  options.recompute_only = true;
  const auto read_options = FromProto(ToProto(options), "team-a");
  ASSERT_TRUE(read_options.ok()) << read_options.status();
  EXPECT_EQ(read_options->solver, "store_all");
  EXPECT_EQ(read_options->slots, 1000000);
  EXPECT_TRUE(read_options->recompute_only);
  EXPECT_EQ(read_options->tenant, "team-a");
}

TEST(RoundTrip, UnspecifiedObjectiveReadsAsLeastTime) {
  const auto options = FromProto(v1::PlanOptions(), "");
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->objective, Objective::kLeastTime);
  EXPECT_EQ(ToProto(*options).objective(), v1::OBJECTIVE_LEAST_TIME);
}

}  // namespace
}  // namespace stowage
