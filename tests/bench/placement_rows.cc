#include "tests/bench/placement_rows.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/placement/placement.h"
#include "solvers/planner.h"
#include "solvers/schedule/schedule_blocks.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/bench/graph_budget_rows.h"
#include "tests/bench/thread_cpu.h"

namespace stowage {
namespace {

constexpr int64_t kBatch = 16;
constexpr int64_t kInceptionSide = 299;
constexpr std::chrono::seconds kJointTime(5);
constexpr char kDecoder[] = "decoder_24";

TransferModel Link() {
  const CopyCost cost{12200000000, Nanos(10000)};
  return {cost, cost, true, Bytes(int64_t{1} << 50)};
}

absl::StatusOr<Problem> ProblemOf(const PlacedNetwork& placed) {
  NetworkOptions options;
  options.name = placed.name;
  options.batch = kBatch;
  if (placed.name == "inception_v3") options.image = kInceptionSide;
  const absl::StatusOr<Network> network =
      placed.name == kDecoder ? MakeDecoder(DecoderOptions()) : MakeNetwork(options);
  if (!network.ok()) return network.status();
  if (!placed.chain) {
    absl::StatusOr<Graph> graph = GraphOf(*network, ModelledV100());
    if (!graph.ok()) return graph.status();
    return Problem(*std::move(graph));
  }
  absl::StatusOr<Chain> chain = ChainOf(*network, ModelledV100());
  if (!chain.ok()) return chain.status();
  return Problem(*std::move(chain));
}

absl::StatusOr<std::optional<PlacementCell>> Place(const Instance& instance, const Plan& plan) {
  if (plan.status != PlanStatus::kFound) return std::optional<PlacementCell>();
  const absl::StatusOr<ScheduleBlocks> blocks = BlocksOf(instance, plan.schedule);
  if (!blocks.ok()) return blocks.status();
  const Nanos start = ThreadCpu();
  const absl::StatusOr<Placement> placement = PlaceBlocks(blocks->lives);
  const Nanos cpu = ThreadCpu() - start;
  if (!placement.ok()) return placement.status();
  const double ratio = static_cast<double>(placement->extent.value()) /
                       static_cast<double>(plan.prediction.peak.value());
  return std::make_optional(PlacementCell{blocks->lives.size(), ratio, cpu});
}

std::string KindOf(const PlacedNetwork& network) {
  return absl::StrCat(network.chain ? "chain" : "graph", network.joint ? ", link" : "");
}

}  // namespace

std::vector<PlacedNetwork> AllPlacedNetworks() {
  std::vector<PlacedNetwork> all;
  for (const bool joint : {false, true}) {
    for (const NetworkInfo& info : AllNetworks()) {
      if (info.chain) all.push_back({info.name, true, joint});
    }
    all.push_back({kDecoder, true, joint});
    for (const std::string& name : BudgetNetworks()) all.push_back({name, false, joint});
  }
  return all;
}

absl::StatusOr<PlacementRow> ComputePlacementRow(const PlacedNetwork& network) {
  const absl::StatusOr<Problem> problem = ProblemOf(network);
  if (!problem.ok()) return problem.status();
  PlanOptions options;
  const Instance instance(*problem,
                          network.joint ? std::optional<TransferModel>(Link()) : std::nullopt);
  const absl::StatusOr<Bytes> store_all = ResolveBudget(instance, ShareOfStoreAll{1.0}, options);
  if (!store_all.ok()) return store_all.status();
  std::optional<Frontier> frontier;
  if (!network.joint) {
    absl::StatusOr<Frontier> made = MakeFrontier(instance, options);
    if (!made.ok()) return made.status();
    frontier = *std::move(made);
  }
  PlacementRow row{network, {}};
  for (const double share : kPlacementShares) {
    const Bytes budget(static_cast<int64_t>(static_cast<double>(store_all->value()) * share));
    const StopToken stop(StopToken::Clock::now() + kJointTime);
    options.solve.stop = &stop;
    absl::StatusOr<Plan> plan =
        frontier ? frontier->PlanAt(budget) : MakePlan(instance, budget, options);
    if (absl::IsDeadlineExceeded(plan.status())) {
      row.cells.push_back(std::nullopt);
      continue;
    }
    if (!plan.ok()) return plan.status();
    if (frontier) {
      const Frontier::Point* const point = frontier->At(budget);
      if (point != nullptr) plan->prediction.peak = point->peak;
    }
    const absl::StatusOr<std::optional<PlacementCell>> cell = Place(instance, *plan);
    if (!cell.ok()) return cell.status();
    row.cells.push_back(*cell);
  }
  return row;
}

std::string PlacementMarkdown(const std::vector<PlacementRow>& rows) {
  std::string text = "| network | plans |";
  for (const double share : kPlacementShares)
    absl::StrAppendFormat(&text, " %.0f%% |", share * 100);
  absl::StrAppend(&text, " most blocks | CPU, most |\n|---|---|");
  for (size_t i = 0; i < std::size(kPlacementShares); ++i) absl::StrAppend(&text, "---:|");
  absl::StrAppend(&text, "---:|---:|\n");
  double worst = 0;
  for (const PlacementRow& row : rows) {
    absl::StrAppend(&text, "| ", row.network.name, " | ", KindOf(row.network), " |");
    size_t blocks = 0;
    Nanos cpu;
    for (const std::optional<PlacementCell>& cell : row.cells) {
      absl::StrAppend(&text, " ", cell ? absl::StrFormat("%.4f", cell->ratio) : "-", " |");
      if (!cell) continue;
      worst = std::max(worst, cell->ratio);
      blocks = std::max(blocks, cell->blocks);
      cpu = std::max(cpu, cell->cpu);
    }
    absl::StrAppendFormat(&text, " %d | %.2f s |\n", blocks,
                          static_cast<double>(cpu.value()) / 1e9);
  }
  absl::StrAppendFormat(&text, "\nThe worst: %.4f.\n", worst);
  return text;
}

std::string PlacementCsv(const std::vector<PlacementRow>& rows) {
  std::string text = "network,plans,share,blocks,ratio,cpu_seconds\n";
  for (const PlacementRow& row : rows) {
    for (size_t i = 0; i < row.cells.size(); ++i) {
      if (!row.cells[i]) continue;
      const PlacementCell& cell = *row.cells[i];
      absl::StrAppend(&text, row.network.name, ",", row.network.chain ? "chain" : "graph",
                      row.network.joint ? "-link" : "", ",", kPlacementShares[i], ",");
      absl::StrAppendFormat(&text, "%d,%.6f,%.3f\n", cell.blocks, cell.ratio,
                            static_cast<double>(cell.cpu.value()) / 1e9);
    }
  }
  return text;
}

}  // namespace stowage
