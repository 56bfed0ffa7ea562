#include "tests/solvers/random_step.h"

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"

namespace stowage::testing {
namespace {

absl::StatusOr<Simulation> Replay(const Chain& chain, EvaluatedStep* step) {
  return step->transfers
             ? Evaluator(Instance(chain, *step->transfers)).Run(step->schedule, &step->timeline)
             : Evaluator(chain).Run(step->schedule, &step->timeline);
}

absl::StatusOr<Simulation> Replay(const Graph& graph, EvaluatedStep* step) {
  return step->transfers
             ? Evaluator(Instance(graph, *step->transfers)).Run(step->schedule, &step->timeline)
             : Evaluator(graph).Run(step->schedule, &step->timeline);
}

template <class Kind>
EvaluatedStep StepOf(const Kind& kind, bool copies, std::mt19937_64* rng) {
  EvaluatedStep step;
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

EvaluatedStep RandomStep(const Chain& chain, bool copies, std::mt19937_64* rng) {
  return StepOf(chain, copies, rng);
}

EvaluatedStep RandomStep(const Graph& graph, bool copies, std::mt19937_64* rng) {
  return StepOf(graph, copies, rng);
}

RandomGraphOptions VariedGraphOptions(int i) {
  RandomGraphOptions options;
  options.with_stops = i % 7 < 4;
  options.vertices = 3 + i % 8;
  options.with_aliases = i % 2 == 0;
  options.with_flags = i % 3 == 0;
  options.sources = i % 4 == 0 ? 0.2 : 0.0;
  return options;
}

}  // namespace stowage::testing
