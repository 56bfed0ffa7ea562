#include "solvers/viz/drawn_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solvers/schedule/instance.h"
#include "tests/solvers/viz/report_sample.h"

namespace stowage {
namespace {

using ::testing::ElementsAre;

TEST(StageRoles, LabelsAreNamesOrOpsWithNumbers) {
  EXPECT_THAT(StageLabels(testing::SampleProblem().problem()),
              ElementsAre("input", "first", "</script><b>'\"&", "r\xc3\xa9seau", "loss"));
  GraphSpec spec;
  for (int v = 0; v < 3; ++v) {
    Vertex vertex;
    vertex.id = vertex.program_order = v;
    if (v == 1) vertex.op_kind = "relu";
    if (v == 2) vertex.name = "named";
    if (v > 0) vertex.inputs = {{v - 1, true}};
    spec.vertices.push_back(vertex);
  }
  EXPECT_THAT(StageLabels(Graph::Create(spec).value()),
              ElementsAre("input", "vertex 1", "relu 2", "named"));
}

TEST(StageRoles, SayWhatThePlanDoesWithEachStage) {
  const DrawnPlan plan = testing::SampleDrawn(false);
  ASSERT_EQ(plan.stages.size(), 5u);
  const StageRole roles[] = {StageRole::kOffload, StageRole::kRecompute, StageRole::kKeep,
                             StageRole::kKeep, StageRole::kKeep};
  for (size_t s = 0; s < 5; ++s) EXPECT_EQ(plan.stages[s].role, roles[s]) << s;
  EXPECT_EQ(plan.stages[0].offloaded, Bytes(1000));
  EXPECT_EQ(plan.stages[0].prefetched, Bytes(1000));
  EXPECT_EQ(plan.stages[1].forwards, 2);
  EXPECT_EQ(plan.stages[1].forward_time, Nanos(2000));
  EXPECT_EQ(plan.stages[1].recompute_time, Nanos(1000));
  EXPECT_EQ(plan.stages[1].backward_time, Nanos(2005));
}

TEST(StageRoles, EventsReadAsWhatTheyDo) {
  const DrawnPlan plan = testing::SampleDrawn(false);
  const std::vector<std::string> labels = {"input", "first", "second", "third", "loss"};
  std::vector<std::string> texts;
  for (const TimelineEvent& event : plan.step.events) {
    texts.push_back(EventText(event, labels[static_cast<size_t>(event.instruction.stage)]));
  }
  EXPECT_THAT(texts, ElementsAre("forward first", "offload input", "forward second, saving",
                                 "wait for the offload: input", "drop output of first",
                                 "forward third, saving", "forward loss, saving", "backward loss",
                                 "backward third", "prefetch input", "wait for the prefetch: input",
                                 "recompute first, saving", "backward second", "backward first"));
}

}  // namespace
}  // namespace stowage
