#include "solvers/schedule/gradient_sums.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

// Vertex 0, which `readers` vertices read, one of them twice, and a sum of those.
Graph Fan(int readers, Bytes gradient) {
  GraphSpec spec;
  for (int v = 0; v <= readers + 1; ++v) {
    Vertex vertex;
    vertex.id = vertex.program_order = v;
    vertex.output = Bytes(4);
    vertex.output_gradient = v == 0 ? gradient : Bytes(4);
    vertex.forward_time = vertex.backward_time = Nanos(1);
    if (v == 1) vertex.inputs = {{0, false}, {0, false}};
    if (v > 1 && v <= readers) vertex.inputs = {{0, false}};
    for (int u = 1; v == readers + 1 && u <= readers; ++u) vertex.inputs.push_back({u, false});
    spec.vertices.push_back(vertex);
  }
  return *Graph::Create(std::move(spec));
}

// Forwards in program order, then backwards in the order given.
Schedule With(const Graph& graph, const std::vector<int>& backwards) {
  Schedule schedule;
  for (int v = 0; v < graph.size(); ++v) schedule.push_back(ForwardSave(v + 1));
  for (const int v : backwards) schedule.push_back(Backward(v + 1));
  return schedule;
}

TEST(GradientSums, OfThreeReadersRunInReverse) {
  const Graph graph = Fan(3, Bytes(4));
  const GradientSums sums(graph);
  EXPECT_TRUE(sums.KeptBy(StoreAllSchedule(graph)));
  EXPECT_TRUE(sums.KeptBy(With(graph, {4, 3, 2, 1, 0})));
  EXPECT_FALSE(sums.KeptBy(With(graph, {4, 2, 3, 1, 0})));
  EXPECT_FALSE(sums.KeptBy(With(graph, {4, 3, 1, 2, 0})));
  EXPECT_FALSE(sums.KeptBy(With(graph, {4, 1, 3, 2, 0})));
  EXPECT_EQ(sums.Before(2), std::vector<int>{3});
  EXPECT_EQ(sums.After(2), std::vector<int>{1});
  EXPECT_TRUE(sums.Before(3).empty());
  EXPECT_TRUE(sums.After(1).empty());
}

// Two summands commute, but memory holds the second one beside the first.
TEST(GradientSums, OfTwoReadersRunInReverse) {
  const Graph graph = Fan(2, Bytes(4));
  const GradientSums sums(graph);
  EXPECT_TRUE(sums.KeptBy(With(graph, {3, 2, 1, 0})));
  EXPECT_FALSE(sums.KeptBy(With(graph, {3, 1, 2, 0})));
}

TEST(GradientSums, OneReaderIsNotHeldToAnything) {
  const GradientSums sums(Fan(1, Bytes(4)));
  for (int v = 0; v < 3; ++v) EXPECT_TRUE(sums.Before(v).empty()) << v;
}

// 0, which 1, 4, and through its view 2 also 3 read, and a sum of these.
Graph WithView() {
  GraphSpec spec;
  for (int v = 0; v < 6; ++v) {
    Vertex vertex;
    vertex.id = vertex.program_order = v;
    vertex.output = vertex.output_gradient = Bytes(4);
    vertex.forward_time = vertex.backward_time = Nanos(1);
    if (v > 0) vertex.inputs = {{v == 3 ? 2 : 0, false}};
    if (v == 2) vertex.alias = AliasKind::kView;
    if (v == 5) vertex.inputs = {{1, false}, {3, false}, {4, false}};
    spec.vertices.push_back(vertex);
  }
  return *Graph::Create(std::move(spec));
}

// What hands its input on as it is has no gradient of its own to give, a slice has one.
TEST(GradientSums, AViewAndItsReadersKeepTheirPlacesAmongThoseOfItsTensor) {
  const Graph graph = WithView();
  const GradientSums sums(graph);
  EXPECT_EQ(sums.Before(1), (std::vector<int>{2, 3}));
  EXPECT_EQ(sums.Before(3), std::vector<int>{4});
  EXPECT_EQ(sums.Before(2), std::vector<int>{4});
  EXPECT_TRUE(sums.KeptBy(With(graph, {5, 4, 3, 2, 1, 0})));
  EXPECT_FALSE(sums.KeptBy(With(graph, {5, 4, 3, 1, 2, 0})));
  EXPECT_FALSE(sums.KeptBy(With(graph, {5, 4, 1, 3, 2, 0})));
}

TEST(GradientSums, DrawViewsForwardOnceAllHaveReadThem) {
  const Graph graph = WithView();
  const GradientSums sums(graph);
  const auto drawn = [&](const std::vector<int>& backwards) {
    return sums.WithViewsInOrder(graph, With(graph, backwards));
  };
  EXPECT_EQ(drawn({5, 4, 3, 1, 2, 0}), With(graph, {5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(drawn({5, 4, 3, 2, 1, 0}), With(graph, {5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(drawn({5, 4, 1, 3, 2, 0}), With(graph, {5, 4, 1, 3, 2, 0})) << "3 reads the view";
}

TEST(GradientSums, ThereAreNoneWithoutAGradient) {
  const Graph graph = Fan(3, Bytes(0));
  EXPECT_TRUE(GradientSums(graph).KeptBy(With(graph, {4, 1, 2, 3, 0})));
}

TEST(GradientSums, OfGroups) {
  const Graph graph = Fan(4, Bytes(4));
  // One that runs with the tensor itself comes after all others; one that reads earlier than its place
  // says is not held to it.
  const GradientSums sums(graph, {{0, 2}, {1}, {4}, {3}, {5}});
  EXPECT_EQ(sums.Before(1), std::vector<int>{3});
  EXPECT_EQ(sums.After(3), std::vector<int>{1});
  for (const int group : {0, 2, 4}) {
    EXPECT_TRUE(sums.Before(group).empty());
    EXPECT_TRUE(sums.After(group).empty());
  }
}

TEST(GradientSums, RepeatedForwardsDoNotCount) {
  const Graph graph = Fan(3, Bytes(4));
  Schedule schedule = With(graph, {4, 3});
  schedule.push_back(ForwardNoSave(3));
  for (const int v : {2, 1, 0}) schedule.push_back(Backward(v + 1));
  EXPECT_TRUE(GradientSums(graph).KeptBy(schedule));
}

}  // namespace
}  // namespace stowage
