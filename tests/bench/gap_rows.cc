#include "tests/bench/gap_rows.h"

#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/model/transfer_model.h"
#include "solvers/planner.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/bench/graph_budget_rows.h"
#include "tests/bench/thread_cpu.h"
#include "tests/bench/transfer_ways.h"

namespace stowage {
namespace {

constexpr int64_t kLinkBytesPerSecond = 24000000000;

double Over(Nanos time, Nanos ideal) {
  return static_cast<double>(time.value()) / static_cast<double>(ideal.value());
}

absl::StatusOr<Instance> MakeInstance(const Network& network, bool as_graph) {
  if (as_graph) {
    absl::StatusOr<Graph> graph = GraphOf(network, ModelledV100());
    if (!graph.ok()) return graph.status();
    return Instance(*std::move(graph));
  }
  absl::StatusOr<Chain> chain = ChainOf(network, ModelledV100());
  if (!chain.ok()) return chain.status();
  return Instance(*std::move(chain));
}

absl::StatusOr<GapCell> ComputeCell(const Instance& instance, double share) {
  const double peak = static_cast<double>(instance.store_all()->peak.value());
  const Bytes budget(static_cast<int64_t>(peak * share));
  const Nanos ideal = instance.ideal_time();
  GapCell cell = {};
  cell.share = share;
  const Nanos start = ThreadCpu();
  const absl::StatusOr<Plan> plan = MakePlan(instance, budget, {});
  if (!plan.ok()) return plan.status();
  const Nanos planned = ThreadCpu();
  // Each anew: the instance remembers nothing.
  cell.bound = Over(StrongestMakespanLowerBound(instance, budget), ideal);
  cell.bound_cpu = ThreadCpu() - planned;
  cell.plan_cpu = planned - start;
  cell.fast_bound = Over(MakespanLowerBound(instance, budget), ideal);
  if (plan->status == PlanStatus::kFound) cell.plan = Over(plan->prediction.makespan, ideal);
  return cell;
}

std::string PerCent(double over) { return absl::StrFormat("%.2f", 100 * (over - 1)); }

std::string GapText(const GapCell& cell) {
  const std::string bounds = absl::StrCat(PerCent(cell.fast_bound), " / ", PerCent(cell.bound));
  if (!cell.plan) return absl::StrCat("- / ", bounds);
  return absl::StrCat(PerCent(*cell.plan), " / ", bounds, " (**", PerCent(*cell.plan / cell.bound),
                      "**)");
}

std::string CpuText(const GapCell& cell) {
  return absl::StrFormat("%.2f s / %.2f ms", static_cast<double>(cell.plan_cpu.value()) / 1e9,
                         static_cast<double>(cell.bound_cpu.value()) / 1e6);
}

void AppendTable(const std::vector<GapRow>& rows, bool as_graph, bool with_link,
                 std::string (*text_of)(const GapCell&), std::string* text) {
  std::string head = "| network (batch) | size |", line = "|---|---:|", body;
  for (const double share : kBudgetShares) {
    absl::StrAppendFormat(&head, " %.0f%% |", 100 * share);
    absl::StrAppend(&line, "---:|");
  }
  for (const GapRow& row : rows) {
    if (row.as_graph != as_graph || row.with_link != with_link) continue;
    absl::StrAppend(&body, "| ", row.network, " (", row.batch, ") | ", row.size, " |");
    for (const GapCell& cell : row.cells) absl::StrAppend(&body, " ", text_of(cell), " |");
    absl::StrAppend(&body, "\n");
  }
  if (body.empty()) return;
  absl::StrAppend(text, "\n### ", as_graph ? "Graphs" : "Chains",
                  with_link ? ", a link of 24 GB/s" : ", no link",
                  text_of == CpuText ? ": CPU time of the plan / of the strongest bound" : "",
                  "\n\n", head, "\n", line, "\n", body);
}

}  // namespace

std::vector<std::string> GapNetworks() { return BudgetNetworks(); }

absl::StatusOr<GapRow> ComputeGapRow(const std::string& network, bool as_graph, bool with_link) {
  const absl::StatusOr<NamedNetwork> named = MakeNamedNetwork(network);
  if (!named.ok()) return named.status();
  absl::StatusOr<Instance> instance = MakeInstance(named->network, as_graph);
  if (!instance.ok()) return instance.status();
  if (with_link) instance = instance->WithLink(HalfDuplexLink(kLinkBytesPerSecond));
  if (!instance->store_all().ok()) return instance->store_all().status();
  GapRow row{network, named->batch, as_graph, with_link, 0, {}};
  row.size = as_graph ? instance->graph().size() : instance->chain().length();
  for (const double share : kBudgetShares) {
    absl::StatusOr<GapCell> cell = ComputeCell(*instance, share);
    if (!cell.ok()) return cell.status();
    row.cells.push_back(*cell);
  }
  return row;
}

std::string GapMarkdown(const std::vector<GapRow>& rows) {
  std::string text =
      "Per cent over the ideal, within a share of plain training's peak: the default plan / the "
      "fast "
      "bound / the strongest bound (and the gap between plan and strongest bound). A dash: nothing "
      "is found within it.\n";
  for (auto* text_of : {GapText, CpuText}) {
    for (const bool as_graph : {false, true}) {
      for (const bool with_link : {false, true}) {
        AppendTable(rows, as_graph, with_link, text_of, &text);
      }
    }
  }
  return text;
}

}  // namespace stowage
