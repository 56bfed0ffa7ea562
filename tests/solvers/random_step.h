// Random steps that the evaluator has replayed, for tests of what takes a step apart.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_STEP_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_STEP_H_

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"
#include "tests/solvers/random_graph.h"

namespace stowage::testing {

struct EvaluatedStep {
  std::optional<TransferModel> transfers;  // nothing in a step that copies nothing
  Schedule schedule;
  Simulation simulation;
  std::vector<TimelinePoint> timeline;
  std::string text;  // problem and schedule: to reproduce a failure
};

// A valid schedule (RandomSchedule), with copies over a random link where they are asked for.
EvaluatedStep RandomStep(const Chain& chain, bool copies, std::mt19937_64* rng);
EvaluatedStep RandomStep(const Graph& graph, bool copies, std::mt19937_64* rng);

// Of three to ten vertices; aliases and flags in turns.
RandomGraphOptions VariedGraphOptions(int i);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_STEP_H_
