// Plans and frontiers of graphs: Evaluator and FrontierBuilder on schedules over vertices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "solvers/schedule/frontier.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/plan.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

// 1 -> 2 -> 3, where backward 2 needs its own output of 4 bytes, and backward 3 takes 8.
Graph Small() {
  GraphSpec spec;
  for (int64_t k = 0; k < 3; ++k) {
    Vertex v;
    v.id = v.program_order = k;
    if (k > 0) v.inputs = {{k - 1, false}};
    v.output = Bytes(k == 1 ? 4 : 1);
    v.forward_time = v.backward_time = Nanos(10);
    v.backward_needs_output = k == 1;
    v.backward_overhead = Bytes(k == 2 ? 8 : 0);
    spec.vertices.push_back(std::move(v));
  }
  return *Graph::Create(std::move(spec));
}

Schedule Recompute(const Graph& graph) {
  return WithDiscards(graph, {ForwardSave(1), ForwardSave(2), ForwardSave(3), Backward(3),
                              ForwardSave(2), Backward(2), Backward(1)});
}

TEST(GraphPlan, TheEvaluatorFillsInPredictionAndBounds) {
  const Graph graph = Small();
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = Bytes(9);
  plan.schedule = Recompute(graph);
  ASSERT_TRUE(ValidatePlan(graph, &plan).ok());
  EXPECT_EQ(plan.bounds.store_all_peak, Bytes(12));
  EXPECT_EQ(plan.bounds.store_all_makespan, Nanos(60));
  EXPECT_EQ(plan.bounds.lower_bound, MakespanLowerBound(graph, Bytes(9)));
  EXPECT_GT(plan.bounds.lower_bound, Nanos(60));
  EXPECT_EQ(plan.prediction.makespan, Nanos(70));
  EXPECT_EQ(plan.prediction.peak, Bytes(9));

  plan.budget = Bytes(8);
  const absl::Status over = ValidatePlan(graph, &plan);
  EXPECT_EQ(over.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(over.message()), HasSubstr("9 bytes exceeds the budget of 8"));
  plan.schedule.pop_back();
  EXPECT_EQ(ValidatePlan(graph, &plan).code(), absl::StatusCode::kInvalidArgument);
}

TEST(GraphPlan, AFrontierHoldsSchedulesOfAGraph) {
  const Graph graph = Small();
  FrontierBuilder builder(graph);
  EXPECT_TRUE(builder.Add(StoreAllSchedule(graph)).ok());
  EXPECT_TRUE(builder.Add(Recompute(graph)).ok());
  EXPECT_EQ(builder.Add(Schedule{Backward(1)}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(builder.MakespanAt(Bytes(11)), Nanos(70));
  EXPECT_EQ(builder.MakespanAt(Bytes(12)), Nanos(60));
  const absl::StatusOr<Frontier> decoded = Frontier::Decode(builder.Build({}).Encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->PlanAt(Bytes(10)).schedule, Recompute(graph));
}

}  // namespace
}  // namespace stowage
