#include "tests/bench/torch/equality_row.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/schedule/plan.h"
#include "tests/bench/torch/asked_plan.h"
#include "tests/client/torch/autocast.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

// Of the evaluator's peak, by which a measured one may be below it. Above it are scalars at most.
constexpr double kTolerance = 0.01;

const std::vector<AskedPlan>& ComparedPlans(Form form) {
  static const auto* const kChain = new std::vector<AskedPlan>{{"", 0.6, false},
                                                               {"optimal_persistent", 0.7, false},
                                                               {"revolve", 0.9, false},
                                                               {"joint", 0.5, true},
                                                               {"offload_dynprog", 0.7, true}};
  static const auto* const kGraph = new std::vector<AskedPlan>{{"", 0.9, false},
                                                               {"", 0.6, false},
                                                               {"", 0.3, false},
                                                               {"joint", 0.7, true},
                                                               {"joint", 0.4, true}};
  return form == Form::kChain ? *kChain : *kGraph;
}

void Count(const Plan& plan, const StepReport& report, bool same, EqualityRow* row) {
  ++row->plans;
  const int copies = Copies(plan.schedule);
  row->moving += copies > 0 ? 1 : 0;
  row->copies += copies;
  row->recomputed_forwards += plan.prediction.recomputed_forwards;
  row->different += same ? 0 : 1;
  row->over_budget += report.peak > plan.budget ? 1 : 0;
  const Simulation& predicted = plan.prediction;
  const bool moved =
      report.offloaded == predicted.offloaded && report.prefetched == predicted.prefetched;
  row->other_copies += moved ? 0 : 1;
  const double ratio =
      static_cast<double>(report.peak.value()) / static_cast<double>(predicted.peak.value());
  row->least_ratio = std::min(row->least_ratio, ratio);
  row->most_ratio = std::max(row->most_ratio, ratio);
  row->above_prediction = std::max(row->above_prediction, report.peak - predicted.peak);
}

class Equality {
 public:
  Equality(const TrainedNetwork& network, std::chrono::milliseconds patience)
      : network_(network), start_(network.tensors()), patience_(patience) {}

  absl::StatusOr<EqualityRow> Compute(const std::vector<AskedPlan>& plans) {
    const absl::StatusOr<Profile> profile = network_.Measure(OnePass());
    if (!profile.ok()) return profile.status();
    start_.Rewind();
    const absl::StatusOr<StepReport> plain = network_.Plain();
    if (!plain.ok()) return plain.status();
    const Outcome outcome = Outcome::Of(network_.tensors(), plain->loss);
    EqualityRow row;
    row.parameters_without_gradient = ParametersWithoutGradient(network_.tensors());
    for (const AskedPlan& asked : plans) {
      const absl::Status status = Hold(profile->problem, asked, outcome, &row);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(asked.solver, " at ", asked.share, ": ",
                                                        std::string(status.message())));
      }
    }
    return row;
  }

 private:
  absl::Status Hold(const Problem& problem, const AskedPlan& asked, const Outcome& plain,
                    EqualityRow* row) {
    const TransferModel link = LinkFor(problem);
    const absl::StatusOr<Plan> plan = PlanFor(problem, asked, link, patience_);
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) return absl::OkStatus();
    std::unique_ptr<SimulatedDevice> device;
    if (asked.may_move) {
      absl::StatusOr<std::unique_ptr<SimulatedDevice>> made = SimulatedDevice::Create(link);
      if (!made.ok()) return made.status();
      device = *std::move(made);
    }
    const absl::StatusOr<Step> step = network_.Planned(problem, plan->schedule, device.get());
    if (!step.ok()) return step.status();
    start_.Rewind();
    const absl::StatusOr<StepReport> report = (*step)();
    if (!report.ok()) return report.status();
    Count(*plan, *report, plain == Outcome::Of(network_.tensors(), report->loss), row);
    return absl::OkStatus();
  }

  const TrainedNetwork& network_;
  const Rewinder start_;
  const std::chrono::milliseconds patience_;
};

}  // namespace

bool EqualityRow::good() const {
  return parameters_without_gradient == 0 && different == 0 && over_budget == 0 &&
         other_copies == 0 && least_ratio >= 1 - kTolerance && above_prediction <= kScalars;
}

absl::StatusOr<EqualityRow> ComputeEqualityRow(const NetworkChoice& choice, Form form,
                                               bool autocast, std::chrono::milliseconds patience) {
  // Plain training sums up the gradients of a tied weight's uses in the type that it is cast to where it
  // remembers the cast from one use to the next.
  const ScopedAutocast scope(autocast, /*remember_casts=*/choice.name != kTiedDecoder);
  const absl::StatusOr<std::unique_ptr<TrainedNetwork>> network =
      TrainedNetwork::Make(choice, form);
  if (!network.ok()) return network.status();
  return Equality(**network, patience).Compute(ComparedPlans(form));
}

std::string EqualityHeader() {
  return "| network | form | type | plans | that move | recomputed | copies | equal | over budget "
         "| "
         "peak / predicted | no gradient |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string EqualityMarkdown(const std::string& network, Form form, bool autocast,
                             const absl::StatusOr<EqualityRow>& row) {
  const std::string head = absl::StrCat("| ", network, " | ", ToString(form), " | ",
                                        autocast ? "bfloat16" : "float32", " | ");
  if (!row.ok()) return absl::StrCat(head, std::string(row.status().message()), " |\n");
  std::string text = absl::StrFormat(
      "%s%d | %d | %d | %d | %d | %d | %.4f to %.4f | %d |\n", head, row->plans, row->moving,
      row->recomputed_forwards, row->copies, row->plans - row->different, row->over_budget,
      row->least_ratio, row->most_ratio, row->parameters_without_gradient);
  if (row->other_copies > 0) {
    absl::StrAppend(&text, "other bytes moved than predicted by ", row->other_copies, " plans\n");
  }
  if (row->above_prediction > kScalars) {
    absl::StrAppend(&text, "a peak ", ToString(row->above_prediction),
                    " above the predicted one\n");
  }
  return text;
}

}  // namespace stowage
