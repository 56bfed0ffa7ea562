// Placements of the reference networks' plans.
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "solvers/chain/solvers.h"
#include "solvers/placement/placement.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule_blocks.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"

namespace stowage {
namespace {

Network NetworkOf(const std::string& name) {
  NetworkOptions options;
  options.name = name;
  options.batch = 8;
  return MakeNetwork(options).value();
}

void ExpectTight(const absl::StatusOr<ScheduleBlocks>& blocks, Bytes peak) {
  ASSERT_TRUE(blocks.ok()) << blocks.status();
  PlacementOptions options;
  options.effort = 20000000;
  const absl::StatusOr<Placement> placement = PlaceBlocks(blocks->lives, options);
  ASSERT_TRUE(placement.ok()) << placement.status();
  EXPECT_GE(placement->live_peak, peak);
  EXPECT_LE(static_cast<double>(placement->extent.value()),
            1.03 * static_cast<double>(peak.value()));
}

TEST(NetworkPlacement, OfChainPlansAtAnyBudgetIsTight) {
  for (const char* name : {"resnet50", "densenet121", "inception_v3", "vgg16"}) {
    SCOPED_TRACE(name);
    const Chain chain = ChainOf(NetworkOf(name), ModelledV100()).value();
    const Frontier frontier = ChosenChainSolver().SolveFrontier(chain, {}).value();
    for (const size_t i : {size_t{0}, frontier.points().size() / 2, frontier.points().size() - 1}) {
      const Schedule schedule = frontier.PlanAt(frontier.points()[i].peak).schedule;
      ExpectTight(BlocksOf(chain, schedule), Evaluator(chain).Run(schedule)->peak);
    }
  }
}

TEST(NetworkPlacement, OfPlainTrainingOfGraphsIsTight) {
  for (const char* name : {"resnet50", "densenet121", "inception_v3"}) {
    SCOPED_TRACE(name);
    const Graph graph = GraphOf(NetworkOf(name), ModelledV100()).value();
    const Schedule schedule = StoreAllSchedule(graph);
    ExpectTight(BlocksOf(graph, schedule), Evaluator(graph).Run(schedule)->peak);
  }
}

}  // namespace
}  // namespace stowage
