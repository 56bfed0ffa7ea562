#include "solvers/viz/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/solvers/viz/markup_check.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

// Four vertices in a row; the third is dropped and made again.
Graph Row() {
  GraphSpec spec;
  spec.name = "row";
  for (int v = 0; v < 4; ++v) {
    Vertex vertex;
    vertex.id = vertex.program_order = v;
    vertex.name = std::string("op<") + std::to_string(v) + ">";
    vertex.output = Bytes(1000 * (v + 1));
    vertex.forward_time = vertex.backward_time = Nanos(10);
    if (v > 0) vertex.inputs = {{v - 1, true}};
    spec.vertices.push_back(vertex);
  }
  return Graph::Create(spec).value();
}

DrawnPlan Drawn(const Graph& graph, bool recomputes) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  for (int v = 1; v <= 4; ++v) plan.schedule.push_back(ForwardSave(v));
  if (recomputes) {
    plan.schedule.push_back(Discard(TensorKind::kActivation, 3));
    plan.schedule.push_back(ForwardSave(3));
  }
  for (int v = 4; v >= 1; --v) plan.schedule.push_back(Backward(v));
  return DrawPlan({graph, std::nullopt}, "60%", plan).value();
}

TEST(GraphPicture, WhatIsRecomputedIsPale) {
  const Graph graph = Row();
  const std::string svg = GraphPicture(graph, Drawn(graph, true), GraphPictureForm::kSvg).value();
  EXPECT_TRUE(testing::IsWellFormed(svg));
  EXPECT_THAT(svg, HasSubstr("row, 60%"));
  EXPECT_EQ(testing::CountMatches(svg, "<rect [^>]*fill=\"#2b3a55\""), 3);
  EXPECT_THAT(svg, HasSubstr("op&lt;2&gt;"));
  const std::string kept = GraphPicture(graph, Drawn(graph, false), GraphPictureForm::kSvg).value();
  EXPECT_EQ(testing::CountMatches(kept, "<rect [^>]*fill=\"#2b3a55\""), 4);
}

TEST(GraphPicture, IsAlsoDot) {
  const Graph graph = Row();
  const std::string dot = GraphPicture(graph, Drawn(graph, true), GraphPictureForm::kDot).value();
  EXPECT_THAT(dot, HasSubstr("digraph"));
  EXPECT_EQ(testing::CountMatches(dot, "#2b3a55"), 3);
}

}  // namespace
}  // namespace stowage
