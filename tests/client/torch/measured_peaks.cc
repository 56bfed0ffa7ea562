#include "tests/client/torch/measured_peaks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "solvers/plan/graph_simulate.h"
#include "solvers/plan/simulate.h"

namespace stowage {
namespace {

using Timeline = std::vector<TimelinePoint>;

template <typename Name>
void ExpectAsPredicted(const Schedule& schedule, const MeasuredStep& measured, Bytes inputs,
                       const absl::Status& simulated, const Timeline& planned, const Name& name) {
  ASSERT_TRUE(simulated.ok()) << simulated;
  ASSERT_EQ(measured.instructions.size(), planned.size());
  Bytes most;
  for (size_t i = 0; i < planned.size(); ++i) {
    const MeasuredInstruction& took = measured.instructions[i];
    EXPECT_LE(took.peak.value(), (planned[i].running + inputs).value())
        << "instruction " << i << ", " << ToString(schedule[i]) << ", " << name(schedule[i].stage);
    most = std::max(most, took.peak);
  }
  EXPECT_EQ(most, measured.peak);
}

}  // namespace

void ExpectPeaksAsPredicted(const Chain& chain, const Schedule& schedule,
                            const MeasuredStep& measured, Bytes inputs,
                            const ExecutionDevice* device) {
  Timeline planned;
  const TransferModel* const link = device != nullptr ? device->link() : nullptr;
  const auto simulated = link != nullptr ? Simulate(chain, schedule, *link, &planned)
                                         : Simulate(chain, schedule, &planned);
  ExpectAsPredicted(schedule, measured, inputs, simulated.status(), planned,
                    [&](int stage) { return stage > 0 ? chain.stage(stage).name : "input"; });
}

void ExpectPeaksAsPredicted(const Graph& graph, const Schedule& schedule,
                            const MeasuredStep& measured, Bytes inputs,
                            const ExecutionDevice* device) {
  Timeline planned;
  const TransferModel* const link = device != nullptr ? device->link() : nullptr;
  const auto simulated = link != nullptr ? SimulateGraph(graph, schedule, *link, &planned)
                                         : SimulateGraph(graph, schedule, &planned);
  ExpectAsPredicted(schedule, measured, inputs, simulated.status(), planned,
                    [&](int number) { return graph.vertex(number - 1).name; });
}

}  // namespace stowage
