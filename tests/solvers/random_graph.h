// Random graphs and random orders of their ops, for the tests.
#ifndef STOWAGE_TESTS_SOLVERS_RANDOM_GRAPH_H_
#define STOWAGE_TESTS_SOLVERS_RANDOM_GRAPH_H_

#include <random>
#include <string>

#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

struct RandomGraphOptions {
  int vertices = 6;
  // Every vertex but a source reads one of the `reach` vertices before it, and each other one of
  // them with probability `density`.
  int reach = 3;
  double density = 0.3;
  double sources = 0.0;  // probability that a vertex after the first reads nothing
  int max_size = 5;
  int max_time = 6;
  bool with_extras = true;     // bytes saved beyond inputs and output
  bool with_overheads = true;  // of forwards and backwards
  bool with_aliases = false;   // views and in-place vertices
  bool with_flags = false;     // random, stateful, collective, must-keep vertices
  double collectives = 0.0;    // probability that a vertex is collective, beside those
  bool with_stops = false;     // recomputes of some vertices stop early
};

// A vertex in place is drawn only where no backward needs what it writes over: training frameworks
// refuse such programs. Ids are 10, 11, ... in program order.
Graph RandomGraph(const RandomGraphOptions& options, std::mt19937_64* rng);

// A valid schedule drawn from everything the evaluator allows on graphs: any order of forwards and
// backwards, repeated forwards, renewed extras, discards of what can be made again.
Schedule RandomSchedule(const Graph& graph, std::mt19937_64* rng);

// One line per vertex: to reproduce a failure.
std::string Describe(const Graph& graph);
// "F+3 F4 B4 -a3 -x3 ...", one instruction after the other.
std::string Describe(const Schedule& schedule);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_RANDOM_GRAPH_H_
