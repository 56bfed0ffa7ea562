#include "tests/bench/torch/overhead_rows.h"

#include <memory>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "client/torch/profile/median.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/measured_step.h"
#include "tests/bench/torch/asked_plan.h"

namespace stowage {
namespace {

constexpr double kShares[] = {0.6, 1};

// Of forwards after a stage's first.
Nanos RecomputedIn(const MeasuredStep& step, const Schedule& schedule) {
  Nanos time;
  std::set<int> seen;
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsForward(schedule[i].op) || seen.insert(schedule[i].stage).second) continue;
    time += step.instructions[i].end - step.instructions[i].start;
  }
  return time;
}

int StagesOf(const Problem& problem) {
  const auto* graph = std::get_if<Graph>(&problem);
  return graph != nullptr ? graph->size() : std::get<Chain>(problem).length() + 1;
}

absl::StatusOr<OverheadRow> MeasurePlan(const TrainedNetwork& network, const Problem& problem,
                                        const Plan& plan, int rounds) {
  MeasuredStep measured;
  const absl::StatusOr<Step> step = network.Planned(problem, plan.schedule);
  if (!step.ok()) return step.status();
  const absl::StatusOr<Step> watched =
      network.Planned(problem, plan.schedule, /*device=*/nullptr, &measured);
  if (!watched.ok()) return watched.status();
  const std::vector<Step> ways = {[&] { return network.Plain(); }, *step, *watched};
  std::vector<Nanos> plain;
  std::vector<double> over_parts, over_plain_cpu;
  for (int round = 0; round < rounds; ++round) {
    const absl::StatusOr<std::vector<StepTimes>> times =
        TakeTurns(ways, /*warmups=*/round == 0 ? 2 : 0, 1);
    if (!times.ok()) return times.status();
    const Nanos parts = (*times)[0].wall.front() + RecomputedIn(measured, plan.schedule);
    plain.push_back((*times)[0].wall.front());
    over_parts.push_back(Ratios((*times)[1].wall, {parts}).front());
    over_plain_cpu.push_back(Ratios((*times)[1].cpu, (*times)[0].cpu).front());
  }
  OverheadRow row;
  row.stages = StagesOf(problem);
  row.stage = Nanos(Median(plain).value() / row.stages);
  row.recomputed_forwards = plan.prediction.recomputed_forwards;
  row.over_parts = SpreadOf(over_parts);
  row.over_plain_cpu = SpreadOf(over_plain_cpu);
  return row;
}

}  // namespace

absl::StatusOr<std::vector<OverheadRow>> MeasureOverheads(const NetworkChoice& choice, Form form,
                                                          const OverheadOptions& options) {
  const absl::StatusOr<std::unique_ptr<TrainedNetwork>> network =
      TrainedNetwork::Make(choice, form);
  if (!network.ok()) return network.status();
  ProfileOptions profiling;
  profiling.repeats = options.repeats;
  const absl::StatusOr<Profile> profile = (*network)->Measure(profiling);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<Simulation> plain = Instance(profile->problem).store_all();
  if (!plain.ok()) return plain.status();
  std::vector<OverheadRow> rows;
  for (const double share : kShares) {
    const absl::StatusOr<Plan> plan =
        PlanFor(profile->problem, {"", share, false}, LinkFor(profile->problem), options.patience);
    if (!plan.ok()) return plan.status();
    absl::StatusOr<OverheadRow> row =
        MeasurePlan(**network, profile->problem, *plan, options.rounds);
    if (!row.ok()) return row.status();
    row->network = choice.name;
    row->form = form;
    row->share =
        static_cast<double>(plan->budget.value()) / static_cast<double>(plain->peak.value());
    rows.push_back(*std::move(row));
  }
  return rows;
}

std::string OverheadHeader() {
  return "| network | form | budget | stages | a stage | recomputed | over plain and "
         "recomputations | "
         "over plain, CPU |\n|---|---|---|---|---|---|---|---|\n";
}

std::string OverheadMarkdown(const OverheadRow& row) {
  return absl::StrFormat("| %s | %s | %.0f%% | %d | %s | %d | %s | %s |\n", row.network,
                         ToString(row.form), row.share * 100, row.stages, ToString(row.stage),
                         row.recomputed_forwards, ToString(row.over_parts),
                         row.recomputed_forwards > 0 ? "" : ToString(row.over_plain_cpu));
}

}  // namespace stowage
