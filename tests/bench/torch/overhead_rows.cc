#include "tests/bench/torch/overhead_rows.h"

#include <cstdint>
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
constexpr int kWarmups = 2;

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

std::vector<Nanos> Sums(const std::vector<Nanos>& times, const std::vector<Nanos>& others) {
  std::vector<Nanos> sums;
  for (size_t i = 0; i < times.size(); ++i) sums.push_back(times[i] + others[i]);
  return sums;
}

// times * numerators / denominators.
std::vector<Nanos> Scaled(const std::vector<Nanos>& times, const std::vector<Nanos>& numerators,
                          const std::vector<Nanos>& denominators) {
  std::vector<Nanos> scaled;
  const std::vector<double> ratios = Ratios(numerators, denominators);
  for (size_t i = 0; i < times.size(); ++i) {
    scaled.emplace_back(static_cast<int64_t>(static_cast<double>(times[i].value()) * ratios[i]));
  }
  return scaled;
}

int StagesOf(const Problem& problem) {
  const auto* graph = std::get_if<Graph>(&problem);
  return graph != nullptr ? graph->size() : std::get<Chain>(problem).length() + 1;
}

absl::StatusOr<OverheadRow> MeasurePlan(const TrainedNetwork& network, const Problem& problem,
                                        const Plan& plan, int rounds) {
  Later<MeasuredStep> measured;
  const absl::StatusOr<Step> step = network.Planned(problem, plan.schedule);
  if (!step.ok()) return step.status();
  const absl::StatusOr<Step> watched =
      network.Planned(problem, plan.schedule, /*device=*/nullptr, &measured);
  if (!watched.ok()) return watched.status();
  std::vector<Nanos> recomputed;  // warm-ups first
  const Step watched_step = [&] {
    absl::StatusOr<StepReport> report = (*watched)();
    if (report.ok()) recomputed.push_back(RecomputedIn(measured, plan.schedule));
    return report;
  };
  const absl::StatusOr<std::vector<StepTimes>> times =
      TakeTurns({[&] { return network.Plain(); }, *step, watched_step}, kWarmups, rounds);
  if (!times.ok()) return times.status();
  const StepTimes &plain = (*times)[0], &planned = (*times)[1];
  recomputed.erase(recomputed.begin(), recomputed.begin() + kWarmups);
  OverheadRow row;
  row.way = "step";
  row.stages = StagesOf(problem);
  row.stage = Nanos(Median(plain.wall).value() / row.stages);
  row.recomputed_forwards = plan.prediction.recomputed_forwards;
  const std::vector<Nanos> parts = Sums(plain.wall, recomputed);
  row.over_parts = SpreadOf(Ratios(planned.wall, parts));
  row.over_parts_cpu = SpreadOf(Ratios(planned.cpu, Scaled(plain.cpu, parts, plain.wall)));
  return row;
}

// Of a plan that recomputes nothing.
absl::StatusOr<OverheadRow> MeasureLoop(const TrainedNetwork& network, const Problem& problem,
                                        const Schedule& schedule, int rounds) {
  const absl::StatusOr<Step> loop = network.PlannedLoop(problem, schedule);
  if (!loop.ok()) return loop.status();
  const absl::StatusOr<std::vector<StepTimes>> times =
      TakeTurns({[&] { return network.PlainLoop(); }, *loop}, kWarmups, rounds);
  if (!times.ok()) return times.status();
  const StepTimes &plain = (*times)[0], &planned = (*times)[1];
  OverheadRow row;
  row.way = "loop";
  row.stages = StagesOf(problem);
  row.stage = Nanos(Median(plain.wall).value() / row.stages);
  row.over_parts = SpreadOf(Ratios(planned.wall, plain.wall));
  row.over_parts_cpu = SpreadOf(Ratios(planned.cpu, plain.cpu));
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
    std::vector<absl::StatusOr<OverheadRow>> measured = {
        MeasurePlan(**network, profile->problem, *plan, options.rounds)};
    if (plan->prediction.recomputed_forwards == 0) {
      measured.push_back(MeasureLoop(**network, profile->problem, plan->schedule, options.rounds));
    }
    for (absl::StatusOr<OverheadRow>& row : measured) {
      if (!row.ok()) return row.status();
      row->network = choice.name;
      row->form = form;
      row->share =
          static_cast<double>(plan->budget.value()) / static_cast<double>(plain->peak.value());
      rows.push_back(*std::move(row));
    }
  }
  return rows;
}

std::string OverheadHeader() {
  return "| network | form | way | budget | stages | a stage | recomputed | over plain and "
         "recomputations | "
         "the same, CPU |\n|---|---|---|---|---|---|---|---|---|\n";
}

std::string OverheadMarkdown(const OverheadRow& row) {
  return absl::StrFormat("| %s | %s | %s | %.0f%% | %d | %s | %d | %s | %s |\n", row.network,
                         ToString(row.form), row.way, row.share * 100, row.stages,
                         ToString(row.stage), row.recomputed_forwards, ToString(row.over_parts),
                         ToString(row.over_parts_cpu));
}

}  // namespace stowage
