#include "tests/bench/graph_budget_rows.h"

#include <cstddef>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "solvers/chain/solvers.h"
#include "solvers/graph/fold.h"
#include "solvers/graph/internal/proposals.h"
#include "solvers/graph/solvers.h"
#include "solvers/schedule/gradient_sums.h"
#include "solvers/schedule/graph_liveness.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/zoo/network_graph.h"
#include "tests/bench/thread_cpu.h"
#include "tests/solvers/paper_graphs.h"

namespace stowage {
namespace {

constexpr int64_t kUsualBatch = 16;

Bytes Share(Bytes bytes, double share) {
  return Bytes(static_cast<int64_t>(static_cast<double>(bytes.value()) * share));
}

double Over(Nanos time, Nanos ideal) {
  return static_cast<double>(time.value()) / static_cast<double>(ideal.value());
}

Way WayOf(const Frontier& frontier, const BudgetRow& row, Nanos cpu) {
  Way way{frontier.points().front().peak, cpu, {}};
  for (const double share : kBudgetShares) {
    const Frontier::Point* point = frontier.At(Share(row.store_all, share));
    way.slowdowns.push_back(
        point == nullptr ? std::nullopt : std::make_optional(Over(point->makespan, row.ideal)));
  }
  return way;
}

absl::StatusOr<Way> Solve(const Solver& solver, const Graph& graph, BudgetRow* row) {
  const Nanos start = ThreadCpu();
  const absl::StatusOr<Frontier> frontier = solver.SolveFrontier(graph, {});
  const Nanos cpu = ThreadCpu() - start;
  if (!frontier.ok()) return frontier.status();
  row->store_all = frontier->points().back().peak;
  return WayOf(*frontier, *row, cpu);
}

absl::StatusOr<Way> Train(const Graph& graph, const BudgetRow& row) {
  const Nanos start = ThreadCpu();
  const absl::StatusOr<Schedule> schedule = CheckpointTrainingSchedule(graph);
  if (!schedule.ok()) return schedule.status();
  FrontierBuilder builder(graph);
  const absl::Status status = builder.Add(*schedule);
  if (!status.ok()) return status;
  return WayOf(builder.Build({}), row, ThreadCpu() - start);
}

}  // namespace

absl::StatusOr<Schedule> CheckpointTrainingSchedule(const Graph& graph) {
  const absl::StatusOr<FoldedGraph> folded = FoldAliases(graph);
  if (!folded.ok()) return folded.status();
  const absl::StatusOr<ComputeOrder> order =
      CheckpointTraining(graph, *folded, OpGraph(folded->graph), {});
  if (!order.ok()) return order.status();
  const Schedule unfolded = UnfoldCompute(*folded, ToSchedule(folded->graph, *order));
  return WithDiscards(graph, GradientSums(graph).WithViewsInOrder(graph, unfolded));
}

const std::vector<std::string>& BudgetNetworks() {
  static const auto* const kNames = new std::vector<std::string>{
      "resnet50", "resnet152", "densenet121", "densenet201", "inception_v3",
      "vgg16",    "nasnet_a",  "amoebanet_a", "darts_v2",    "decoder_24"};
  return *kNames;
}

absl::StatusOr<NamedNetwork> MakeNamedNetwork(const std::string& name) {
  NetworkOptions options;
  options.name = name;
  options.batch = kUsualBatch;
  for (const PaperGraph& paper : PaperGraphs()) {
    if (paper.name == name) options = paper.network;
  }
  DecoderOptions decoder;
  const bool is_decoder = absl::StartsWith(name, "decoder_") &&
                          absl::SimpleAtoi(absl::StripPrefix(name, "decoder_"), &decoder.layers);
  absl::StatusOr<Network> network = is_decoder ? MakeDecoder(decoder) : MakeNetwork(options);
  if (!network.ok()) return network.status();
  return NamedNetwork{name, is_decoder ? decoder.batch : options.batch, *std::move(network)};
}

absl::StatusOr<BudgetNetwork> MakeBudgetNetwork(const std::string& name) {
  const absl::StatusOr<NamedNetwork> named = MakeNamedNetwork(name);
  if (!named.ok()) return named.status();
  absl::StatusOr<Graph> graph = GraphOf(named->network, ModelledV100());
  if (!graph.ok()) return graph.status();
  return BudgetNetwork{name, named->batch, *std::move(graph)};
}

absl::StatusOr<BudgetRow> ComputeBudgetRow(const BudgetNetwork& network) {
  const Graph& graph = network.graph;
  BudgetRow row;
  row.name = network.name;
  row.batch = network.batch;
  row.vertices = graph.size();
  row.ideal = graph.ideal_time();
  row.peak_lower_bound = PeakLowerBound(graph);
  // First: its last point says what plain training takes.
  absl::StatusOr<Way> way = Solve(OrderSearchSolver(), graph, &row);
  if (!way.ok()) return way.status();
  row.search = *std::move(way);
  const Bytes store_all = row.store_all;
  way = Solve(LinearizedSolver(&ChosenChainSolver()), graph, &row);
  if (!way.ok()) return way.status();
  row.chain = *std::move(way);
  row.store_all = store_all;
  way = Train(graph, row);
  if (!way.ok()) return way.status();
  row.checkpoints = *std::move(way);
  const Instance instance = Instance(graph).Remembering();
  for (const double share : kBudgetShares) {
    const Nanos bound = StrongestMakespanLowerBound(instance, Share(store_all, share));
    row.bounds.push_back(Over(bound, row.ideal));
  }
  return row;
}

}  // namespace stowage
