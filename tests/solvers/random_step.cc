#include "tests/solvers/random_step.h"

#include "solvers/plan/graph_simulate.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

absl::StatusOr<Simulation> Replay(const Chain& chain, RefereedStep* step) {
  return step->transfers ? Simulate(chain, step->schedule, *step->transfers, &step->timeline)
                         : Simulate(chain, step->schedule, &step->timeline);
}

absl::StatusOr<Simulation> Replay(const Graph& graph, RefereedStep* step) {
  return step->transfers ? SimulateGraph(graph, step->schedule, *step->transfers, &step->timeline)
                         : SimulateGraph(graph, step->schedule, &step->timeline);
}

template <class Kind>
RefereedStep StepOf(const Kind& kind, bool copies, std::mt19937_64* rng) {
  RefereedStep step;
  step.schedule = RandomSchedule(kind, rng);
  if (copies) {
    step.transfers = RandomTransferModel(rng);
    step.schedule = WithRandomTransfers(kind, step.schedule, *step.transfers, rng);
  }
  step.text = Describe(kind) + Describe(step.schedule);
  step.simulation = Replay(kind, &step).value();
  return step;
}

}  // namespace

RefereedStep RandomStep(const Chain& chain, bool copies, std::mt19937_64* rng) {
  return StepOf(chain, copies, rng);
}

RefereedStep RandomStep(const Graph& graph, bool copies, std::mt19937_64* rng) {
  return StepOf(graph, copies, rng);
}

RandomGraphOptions VariedGraphOptions(int i) {
  RandomGraphOptions options;
  options.vertices = 3 + i % 8;
  options.with_aliases = i % 2 == 0;
  options.with_flags = i % 3 == 0;
  options.sources = i % 4 == 0 ? 0.2 : 0.0;
  return options;
}

}  // namespace stowage::testing
