#include "client/cli/comparison.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/cells.h"
#include "client/cli/plan_flags.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr char kPlanner[] = "planner";

std::string Percent(double ratio) { return absl::StrFormat("%.1f", 100 * ratio); }

// In the table: a plan, or why there is none.
std::string Outcome(const Compared& row) {
  if (!row.failure.empty()) return row.failure;
  switch (row.plan.status) {
    case PlanStatus::kFound:
      return "fits";
    case PlanStatus::kProvenInfeasible:
      return "does not fit";
    case PlanStatus::kNotFound:
      return "none found";
  }
  return "";
}

std::string Proof(const Plan& plan) {
  if (plan.prediction.makespan <= plan.bounds.lower_bound) return "of all";
  return plan.bounds.proven_optimal ? "of its class" : "no";
}

std::vector<Listing::Cell> CellsOf(const Plan& plan) {
  const Simulation& p = plan.prediction;
  const double overhead = Overhead(p.makespan, plan.bounds.store_all_makespan);
  return {Listing::Number(Milliseconds(p.makespan), p.makespan.value()),
          Listing::Number(Percent(overhead), overhead),
          Listing::Number(Mebibytes(p.peak), p.peak.value()),
          Listing::Integer(p.recomputed_forwards),
          Listing::Number(Milliseconds(p.recompute_time), p.recompute_time.value()),
          Listing::Number(Mebibytes(p.offloaded), p.offloaded.value()),
          Listing::Number(Percent(plan.gap()), plan.gap()),
          Listing::Text(Proof(plan)),
          {"", plan.bounds.proven_optimal ? "true" : "false", false},
          {"", plan.bounds.schedule_class, true}};
}

bool AllSame(const std::vector<Compared>& rows, std::string Compared::*member) {
  return std::all_of(rows.begin(), rows.end(),
                     [&](const Compared& row) { return row.*member == rows.front().*member; });
}

// What a budget that is no number of bytes means.
std::string BudgetWords(const std::string& budget) {
  if (absl::EndsWith(budget, "%")) return absl::StrCat(budget, " of plain training's peak");
  return budget == "least" ? "least: the smallest that each strategy has a schedule for" : budget;
}

// With its bytes, unless they differ (the least of each strategy) or are said already.
std::string BudgetText(const std::vector<Compared>& rows) {
  const Compared& first = rows.front();
  const std::string bytes = ToString(first.plan.budget);
  const bool same = std::all_of(rows.begin(), rows.end(), [&first](const Compared& row) {
    return !row.failure.empty() || row.plan.budget == first.plan.budget;
  });
  if (!same || first.budget == bytes) return BudgetWords(first.budget);
  return absl::StrCat(BudgetWords(first.budget), " (", bytes, ")");
}

}  // namespace

std::vector<std::string> KnownStrategies(const Instance& instance) {
  std::vector<std::string> names = {
      "store_all", "checkpoint_sequential", "chen_sqrt",    "chen_greedy",
      "revolve",   "optimal_persistent",    "division_tree"};
  if (instance.link()) {
    for (const char* name : {"offload_greedy", "offload_dynprog"}) names.emplace_back(name);
  }
  const auto unknown = [&](const std::string& name) { return !FindSolver(instance, name).ok(); };
  names.erase(std::remove_if(names.begin(), names.end(), unknown), names.end());
  names.emplace_back();
  return names;
}

absl::StatusOr<std::vector<std::string>> ParseStrategies(const Instance& instance,
                                                         const std::string& text) {
  std::vector<std::string> names;
  for (const std::string& part : PartsOf(text)) {
    names.push_back(part == kPlanner ? "" : part);
    const absl::Status status = FindSolver(instance, names.back()).status();
    if (!status.ok()) return status;
  }
  return names;
}

Listing ListingOf(const std::vector<Compared>& rows) {
  const bool one_thing = AllSame(rows, &Compared::of),
             one_budget = AllSame(rows, &Compared::budget);
  Listing listing({{one_thing ? "" : "of", "", "of"},
                   {one_budget ? "" : "budget", "", "budget"},
                   {"", "", "budget_bytes"},
                   {"strategy", "", "strategy"},
                   {"", "", "solver"},
                   {"", "outcome", "outcome"},
                   {"step", "ms", "makespan_ns"},
                   {"over plain", "step %", "overhead"},
                   {"peak", "MiB", "peak_bytes"},
                   {"recomputed", "forwards", "recomputed_forwards"},
                   {"recomputed", "ms", "recompute_time_ns"},
                   {"offloaded", "MiB", "offloaded_bytes"},
                   {"gap to", "bound %", "gap"},
                   {"proven", "fastest", ""},
                   {"", "", "proven_optimal"},
                   {"", "", "schedule_class"}});
  constexpr size_t kPlanCells = 10;
  for (const Compared& row : rows) {
    std::vector<Listing::Cell> cells = {
        Listing::Text(row.of),
        Listing::Text(row.budget),
        row.failure.empty() ? Listing::Integer(row.plan.budget.value()) : Listing::Nothing(),
        Listing::Text(row.strategy),
        row.failure.empty() ? Listing::Text(row.plan.provenance.solver) : Listing::Nothing(),
        Listing::Text(Outcome(row)),
    };
    const std::vector<Listing::Cell> figures =
        row.fits() ? CellsOf(row.plan) : std::vector<Listing::Cell>(kPlanCells, Listing::Nothing());
    cells.insert(cells.end(), figures.begin(), figures.end());
    listing.AddRow(std::move(cells));
  }
  return listing;
}

std::string ToText(const std::vector<Compared>& rows) {
  std::string head;
  if (AllSame(rows, &Compared::of)) absl::StrAppend(&head, rows.front().of);
  if (AllSame(rows, &Compared::budget)) {
    absl::StrAppend(&head, head.empty() ? "" : ", ", "budget ", BudgetText(rows));
  }
  std::map<std::string, std::string> classes;
  for (const Compared& row : rows) {
    if (row.fits()) classes[row.plan.provenance.solver] = row.plan.bounds.schedule_class;
  }
  std::string text = absl::StrCat(head, head.empty() ? "" : "\n\n", ListingOf(rows).Table());
  if (classes.empty()) return text;
  text +=
      "\nplain: training that stores every activation. gap: time over a bound that no schedule "
      "within "
      "the budget beats.\nproven fastest of all: of all schedules within the budget; of its class: "
      "of "
      "those that its solver chooses among,\n";
  for (const auto& [solver, schedule_class] : classes) {
    absl::StrAppendFormat(&text, "  %-22s %s\n", solver, schedule_class);
  }
  return text;
}

}  // namespace stowage
