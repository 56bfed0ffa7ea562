#include "tests/bench/torch/gain_row.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/torch/profile/median.h"
#include "solvers/chain/segments.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

double Ratio(Nanos a, Nanos b) {
  return static_cast<double>(a.value()) / static_cast<double>(b.value());
}

std::vector<double> Less1(std::vector<double> ratios) {
  for (double& ratio : ratios) ratio -= 1;
  return ratios;
}

class GainMeasurement {
 public:
  GainMeasurement(const TrainedNetwork& network, const GainOptions& options, Profile profile)
      : network_(network), options_(options), profile_(std::move(profile)) {}

  absl::StatusOr<GainRow> Measure() {
    GainRow row;
    row.length = chain().length();
    absl::Status status = FindBestRun(&row);
    if (status.ok()) status = AddRival("optimal_persistent", row.memory);
    if (status.ok()) status = AddRival("", row.memory);
    if (!status.ok()) return status;
    const absl::StatusOr<std::vector<StepTimes>> times = Times(ways_, options_.rounds);
    if (!times.ok()) return times.status();
    row.step = Median((*times)[0].wall);
    row.optimal = GainOf(*times, 1);
    row.choice_of_planner = GainOf(*times, 2);
    if (row.optimal.peak > row.memory || row.choice_of_planner.peak > row.memory) {
      return absl::ResourceExhaustedError("a rival takes more memory than the run");
    }
    return row;
  }

 private:
  // What a device does costs the calling thread little.
  Nanos TimeOf(const StepTimes& times) const {
    return Median(options_.device == nullptr ? times.cpu : times.wall);
  }
  absl::StatusOr<std::vector<StepTimes>> Times(const std::vector<Step>& ways, int rounds) const {
    return TakeTurns(ways, /*warmups=*/1, rounds, /*before=*/options_.device == nullptr ? 0 : 1);
  }
  const Chain& chain() const { return std::get<Chain>(profile_.problem); }

  // Beside a plain step.
  absl::Status FindBestRun(GainRow* row) {
    const int most = std::min(row->length, static_cast<int>(2 * std::sqrt(row->length)));
    std::vector<Step> runs = {[this] { return network_.Plain(); }};
    for (int segments = 2; segments <= most; ++segments) {
      absl::StatusOr<Step> run =
          network_.Planned(profile_.problem, SequentialSchedule(chain(), segments));
      if (!run.ok()) return run.status();
      runs.push_back(*std::move(run));
    }
    if (runs.size() < 2) return absl::InvalidArgumentError("too few stages for two segments");
    const absl::StatusOr<std::vector<StepTimes>> times = Times(runs, options_.screenings);
    if (!times.ok()) return times.status();
    size_t best = 1;
    for (size_t i = 2; i < runs.size(); ++i) {
      if (TimeOf((*times)[i]) < TimeOf((*times)[best])) best = i;
    }
    row->segments = static_cast<int>(best) + 1;
    row->memory = (*times)[best].peak;
    row->plain_memory = (*times)[0].peak;
    row->over_plain = Ratio(TimeOf((*times)[best]), TimeOf((*times)[0]));
    const absl::StatusOr<Simulation> predicted =
        Evaluator(profile_.problem).Run(SequentialSchedule(chain(), row->segments));
    if (!predicted.ok()) return predicted.status();
    ways_ = {runs[best]};
    makespans_ = {predicted->makespan};
    return absl::OkStatus();
  }

  absl::Status AddRival(const std::string& solver, Bytes memory) {
    PlanOptions options;
    options.solver = solver;
    const absl::StatusOr<Plan> plan = MakePlan(profile_.problem, memory, options);
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) return absl::InternalError(plan->explanation);
    absl::StatusOr<Step> step = network_.Planned(profile_.problem, plan->schedule);
    if (!step.ok()) return step.status();
    ways_.push_back(*std::move(step));
    makespans_.push_back(plan->prediction.makespan);
    return absl::OkStatus();
  }

  Gain GainOf(const std::vector<StepTimes>& times, size_t rival) const {
    Gain gain;
    gain.wall = SpreadOf(Less1(Ratios(times[0].wall, times[rival].wall)));
    gain.cpu = SpreadOf(Less1(Ratios(times[0].cpu, times[rival].cpu)));
    gain.modelled = Ratio(makespans_[0], makespans_[rival]) - 1;
    gain.peak = times[rival].peak;
    return gain;
  }

  const TrainedNetwork& network_;
  const GainOptions options_;
  const Profile profile_;
  std::vector<Step> ways_;        // the best run, then its rivals
  std::vector<Nanos> makespans_;  // of the same, predicted
};

std::string Percent(const Spread& spread) {
  return absl::StrFormat("%+.1f%% (%+.1f to %+.1f)", spread.median * 100, spread.low * 100,
                         spread.high * 100);
}

}  // namespace

absl::StatusOr<GainRow> MeasureGain(const NetworkChoice& choice, const GainOptions& options) {
  const absl::StatusOr<std::unique_ptr<TrainedNetwork>> network =
      TrainedNetwork::Make(choice, Form::kChain, options.device);
  if (!network.ok()) return network.status();
  ProfileOptions profiling;
  profiling.repeats = options.repeats;
  absl::StatusOr<Profile> profile = (*network)->Measure(profiling);
  if (!profile.ok()) return profile.status();
  absl::StatusOr<GainRow> row = GainMeasurement(**network, options, *std::move(profile)).Measure();
  if (row.ok()) row->choice = choice;
  return row;
}

std::string GainHeader() {
  return "| network | size | batch | stages | segments | memory | of plain | step | over plain | "
         "optimal_persistent: wall | CPU | modelled | planner's choice: wall | CPU | modelled |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string GainMarkdown(const GainRow& row) {
  const auto gain = [](const Gain& of) {
    return absl::StrFormat(" %s | %s | %+.1f%% |", Percent(of.wall), Percent(of.cpu),
                           of.modelled * 100);
  };
  return absl::StrFormat(
      "| %s | %d | %d | %d | %d | %s | %.0f%% | %s | %.2f |%s%s\n", row.choice.name,
      row.choice.image, row.choice.batch, row.length, row.segments, ToString(row.memory),
      100.0 * static_cast<double>(row.memory.value()) /
          static_cast<double>(row.plain_memory.value()),
      ToString(row.step), row.over_plain, gain(row.optimal), gain(row.choice_of_planner));
}

std::string GainSummary(const std::vector<GainRow>& rows) {
  if (rows.empty()) return "";
  const auto mean = [&](const Gain GainRow::*gain) {
    double wall = 0, cpu = 0, modelled = 0;
    for (const GainRow& row : rows) {
      wall += (row.*gain).wall.median;
      cpu += (row.*gain).cpu.median;
      modelled += (row.*gain).modelled;
    }
    const double share = 100.0 / static_cast<double>(rows.size());
    return absl::StrFormat("%+.1f%% by wall time, %+.1f%% by CPU time, %+.1f%% modelled",
                           wall * share, cpu * share, modelled * share);
  };
  return absl::StrFormat("mean of %d: optimal_persistent %s; planner's choice %s\n", rows.size(),
                         mean(&GainRow::optimal), mean(&GainRow::choice_of_planner));
}

}  // namespace stowage
