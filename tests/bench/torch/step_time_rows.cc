#include "tests/bench/torch/step_time_rows.h"

#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/torch/offload/simulated_device.h"
#include "client/torch/profile/median.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

const std::vector<AskedPlan>& TimedPlans(Form form) {
  static const auto* const kChain = new std::vector<AskedPlan>{{"", 0.8, false},
                                                               {"", 0.5, false},
                                                               {"revolve", 0.6, false},
                                                               {"joint", 0.5, true},
                                                               {"offload_dynprog", 0.7, true}};
  static const auto* const kGraph = new std::vector<AskedPlan>{
      {"", 0.8, false}, {"", 0.5, false}, {"", 0.3, false}, {"joint", 0.5, true}};
  return form == Form::kChain ? *kChain : *kGraph;
}

// A plan that is trained by, and what was measured of it, by round.
struct Candidate {
  Plan plan;
  double share = 1;
  std::vector<Nanos> predicted;
};

class StepTimeMeasurement {
 public:
  StepTimeMeasurement(const TrainedNetwork& network, const StepTimeOptions& options)
      : network_(network), options_(options) {}

  // Profiles and plans.
  absl::Status Prepare(const std::vector<AskedPlan>& asked) {
    ProfileOptions profiling;
    profiling.repeats = options_.repeats;
    absl::StatusOr<Profile> profile = network_.Measure(profiling);
    if (!profile.ok()) return profile.status();
    const Problem& problem = profile->problem;
    ideal_ = IdealTime(problem);
    const absl::StatusOr<Simulation> plain = Instance(problem).store_all();
    if (!plain.ok()) return plain.status();
    link_ = LinkFor(problem);
    absl::StatusOr<std::unique_ptr<SimulatedDevice>> device = SimulatedDevice::Create(link_);
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    ways_.push_back([this] { return network_.Plain(); });
    for (const AskedPlan& each : asked) {
      absl::StatusOr<Plan> plan = PlanFor(problem, each, link_, options_.patience);
      if (!plan.ok()) return plan.status();
      if (plan->status != PlanStatus::kFound) continue;
      absl::StatusOr<Step> step = network_.Planned(problem, plan->schedule, device_.get());
      if (!step.ok()) return step.status();
      ways_.push_back(*std::move(step));
      const double share =
          static_cast<double>(plan->budget.value()) / static_cast<double>(plain->peak.value());
      candidates_.push_back({*std::move(plan), share, {}});
    }
    return absl::OkStatus();
  }

  absl::Status Run() {
    times_.resize(ways_.size());
    for (int round = 0; round < options_.rounds; ++round) {
      absl::Status status = Predict();
      if (!status.ok()) return status;
      const absl::StatusOr<std::vector<StepTimes>> times =
          TakeTurns(ways_, /*warmups=*/round == 0 ? 1 : 0, 1);
      if (!times.ok()) return times.status();
      for (size_t i = 0; i < ways_.size(); ++i) {
        times_[i].wall.push_back((*times)[i].wall.front());
        times_[i].cpu.push_back((*times)[i].cpu.front());
      }
    }
    return absl::OkStatus();
  }

  std::vector<StepTimeRow> Rows(const std::string& network, Form form) const {
    std::vector<StepTimeRow> rows;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const Candidate& candidate = candidates_[i];
      const std::vector<Nanos>& measured = times_[i + 1].wall;
      const Simulation& prediction = candidate.plan.prediction;
      const std::vector<Nanos> first(measured.size(), prediction.makespan);
      StepTimeRow row;
      row.network = network;
      row.form = form;
      row.solver = candidate.plan.provenance.solver;
      row.share = candidate.share;
      row.recomputed_forwards = prediction.recomputed_forwards;
      row.copies = Copies(candidate.plan.schedule);
      row.measured = Median(measured);
      row.slowdown =
          static_cast<double>(prediction.makespan.value()) / static_cast<double>(ideal_.value());
      row.over_plain = SpreadOf(Ratios(measured, times_[0].wall));
      row.over_plain_cpu = SpreadOf(Ratios(times_[i + 1].cpu, times_[0].cpu));
      row.over_prediction = SpreadOf(Ratios(measured, candidate.predicted));
      row.over_first = SpreadOf(Ratios(measured, first));
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  // What a profile of this moment says of every schedule.
  absl::Status Predict() {
    ProfileOptions now;
    now.warmup = 0;
    now.repeats = 1;
    const absl::StatusOr<Profile> profile = network_.Measure(now);
    if (!profile.ok()) return profile.status();
    for (Candidate& candidate : candidates_) {
      const absl::StatusOr<Simulation> run =
          Evaluator(Instance(profile->problem, link_)).Run(candidate.plan.schedule);
      if (!run.ok()) return run.status();
      candidate.predicted.push_back(run->makespan);
    }
    return absl::OkStatus();
  }

  const TrainedNetwork& network_;
  const StepTimeOptions options_;
  Nanos ideal_;
  TransferModel link_;
  std::unique_ptr<SimulatedDevice> device_;
  std::vector<Candidate> candidates_;
  std::vector<Step> ways_;        // plain, then the candidates
  std::vector<StepTimes> times_;  // by way
};

double Off(double ratio) { return std::abs(ratio - 1) * 100; }

// "4.1% (quartiles 2.0% to 5.5%)", over the medians of each network and form.
std::string MediansText(const std::map<std::string, std::vector<double>>& values) {
  std::vector<double> medians;
  for (const auto& [key, of_plans] : values) medians.push_back(Median(of_plans));
  const Spread spread = SpreadOf(medians);
  return absl::StrFormat("%.1f%% (quartiles %.1f%% to %.1f%%)", spread.median, spread.low,
                         spread.high);
}

std::string SummaryOf(const std::vector<StepTimeRow>& rows, bool moving) {
  std::map<std::string, std::vector<double>> prediction, plain, cpu;
  for (const StepTimeRow& row : rows) {
    if ((row.copies > 0) != moving) continue;
    const std::string key = absl::StrCat(row.network, " ", ToString(row.form));
    prediction[key].push_back(Off(row.over_prediction.median));
    plain[key].push_back(Off(row.over_plain.median / row.slowdown));
    cpu[key].push_back(Off(row.over_plain_cpu.median / row.slowdown));
  }
  if (prediction.empty()) return "";
  return absl::StrCat(moving ? "plans that move" : "plans that recompute",
                      ": off the prediction by ", MediansText(prediction),
                      ", off the predicted slowdown by ", MediansText(plain),
                      moving ? "" : absl::StrCat(", in CPU time by ", MediansText(cpu)), ", ",
                      prediction.size(), " networks and forms\n");
}

}  // namespace

absl::StatusOr<std::vector<StepTimeRow>> MeasureStepTimes(const NetworkChoice& choice, Form form,
                                                          const StepTimeOptions& options) {
  const absl::StatusOr<std::unique_ptr<TrainedNetwork>> network =
      TrainedNetwork::Make(choice, form);
  if (!network.ok()) return network.status();
  StepTimeMeasurement measurement(**network, options);
  absl::Status status = measurement.Prepare(TimedPlans(form));
  if (status.ok()) status = measurement.Run();
  if (!status.ok()) return status;
  return measurement.Rows(choice.name, form);
}

std::string StepTimeHeader() {
  return "| network | form | solver | budget | recomputed | copies | step | over prediction | over "
         "plain step | the same, CPU | predicted | over the first profile's prediction |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string StepTimeMarkdown(const StepTimeRow& row) {
  return absl::StrFormat("| %s | %s | %s | %.0f%% | %d | %d | %s | %s | %s | %s | %.3f | %s |\n",
                         row.network, ToString(row.form), row.solver, row.share * 100,
                         row.recomputed_forwards, row.copies, ToString(row.measured),
                         ToString(row.over_prediction), ToString(row.over_plain),
                         ToString(row.over_plain_cpu), row.slowdown, ToString(row.over_first));
}

std::string StepTimeSummary(const std::vector<StepTimeRow>& rows) {
  return absl::StrCat(SummaryOf(rows, false), SummaryOf(rows, true));
}

}  // namespace stowage
