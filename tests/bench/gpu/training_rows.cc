#include "tests/bench/gpu/training_rows.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/torch/model/autocast_state.h"
#include "client/torch/profile/median.h"
#include "solvers/chain/segments.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "tests/bench/gpu/selective_schedule.h"
#include "tests/bench/torch/asked_plan.h"
#include "tests/bench/torch/turns.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

constexpr double kShares[] = {0.8, 0.6, 0.4};
constexpr int kPlainRuns = 4;

// A speed to begin with, before any was measured.
TransferModel LinkWith(Bytes host_memory) {
  const CopyCost cost{int64_t{1} << 30, Nanos(0)};
  return {cost, cost, /*full_duplex=*/true, host_memory};
}

// What a row is about.
struct Way {
  std::string id;
  std::string solver;
  Bytes budget;
  Schedule schedule;
  Simulation prediction;
};

// Plain and planned steps of one network in one form.
class TrainingMeasurement {
 public:
  static absl::StatusOr<std::unique_ptr<TrainingMeasurement>> Begin(const ReportedNetwork& network,
                                                                    Form form,
                                                                    const ReportEffort& effort,
                                                                    ReportDevice* device) {
    auto made = std::unique_ptr<TrainingMeasurement>(new TrainingMeasurement(effort, device));
    absl::Status status = made->Prepare(network, form);
    if (!status.ok()) return status;
    return made;
  }

  const Problem& problem() const { return profile_->problem; }
  const TransferModel& link() const { return *copying_->link(); }
  const Network& described() const { return network_->described(); }

  absl::StatusOr<ReportRow> Measure(const Way& way) {
    absl::StatusOr<Step> step = network_->Planned(problem(), way.schedule, DeviceFor(way));
    if (!step.ok()) return step.status();
    ReportRow row(way.id);
    row.Add("form", is_chain() ? "chain" : "graph").Add("solver", way.solver);
    row.Add("autocast", AutocastState::Capture().enabled());
    row.Add("batch", batch_).Add("budget", way.budget).Add("predicted_peak", way.prediction.peak);
    row.Add("recomputed", int64_t{way.prediction.recomputed_forwards});
    row.Add("copies", int64_t{Copies(way.schedule)});
    absl::Status status = AddOutcome(*step, &row);
    if (status.ok()) status = AddMemory(*step, way.prediction, &row);
    if (status.ok()) status = AddTimes(*step, way.prediction, &row);
    if (status.ok()) status = Trace(way);
    if (status.ok()) status = TraceKernels(way.id, *step);
    if (!status.ok()) return status;
    return row;
  }

 private:
  TrainingMeasurement(const ReportEffort& effort, ReportDevice* device)
      : effort_(effort), report_device_(device) {}

  // Null: the network's own.
  ExecutionDevice* DeviceFor(const Way& way) const {
    return Copies(way.schedule) > 0 ? copying_.get() : nullptr;
  }

  bool is_chain() const { return std::holds_alternative<Chain>(problem()); }

  absl::Status Prepare(const ReportedNetwork& reported, Form form) {
    const NetworkChoice& choice = reported.choice;
    plain_id_ = absl::StrCat(reported.name, "/plain/", ToString(form));
    batch_ = choice.batch;
    const absl::StatusOr<MeasuredTransfers> link = MeasureReportedLink(effort_, report_device_);
    if (!link.ok()) return link.status();
    auto device = report_device_->Make(LinkWith(Bytes(0)));
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    auto network = TrainedNetwork::Make(choice, form, device_.get());
    if (!network.ok()) return network.status();
    network_ = *std::move(network);
    report_device_->BeDeterministic(/*may_warn=*/false);
    const absl::Status first = network_->Plain().status();
    if (absl::StrContains(first.message(), "deterministic implementation")) {
      report_device_->BeDeterministic(/*may_warn=*/true);
    } else if (!first.ok()) {
      return first;
    }
    ProfileOptions options;
    options.repeats = effort_.repeats;
    absl::StatusOr<Profile> profile = network_->Measure(options);
    if (!profile.ok()) return profile.status();
    profile_ = *std::move(profile);
    const absl::StatusOr<Simulation> plain = Instance(problem()).store_all();
    if (!plain.ok()) return plain.status();
    TransferModel model = link->model;
    model.host_memory = std::min(plain->peak, kMostHostMemory);
    auto copying = report_device_->Make(model);
    if (!copying.ok()) return copying.status();
    copying_ = *std::move(copying);
    return TrainPlain();
  }

  // Twice: what differs between equal steps, plans are not to blame for. Then more of them say how much that may be.
  absl::Status TrainPlain() {
    start_.emplace(network_->tensors(), device_->device());
    const Step plain = [this] { return network_->Plain(); };
    for (int run = 0; run < 2 || (!plain_repeats_ && run < kPlainRuns); ++run) {
      absl::StatusOr<Outcome> trained = OutcomeOf(plain);
      if (!trained.ok()) return trained.status();
      if (run == 0) plain_ = *std::move(trained);
      if (run == 1) plain_repeats_ = *trained == *plain_;
      gradients_.push_back(Gradients());
    }
    absl::Status traced = TraceKernels(plain_id_, plain);
    if (plain_repeats_ || !traced.ok()) {
      gradients_.clear();
      return traced;
    }
    for (size_t i = 1; i < gradients_.size(); ++i) {
      for (size_t j = 0; j < i; ++j)
        spread_ = std::max(spread_, Apart(gradients_[j], gradients_[i]));
    }
    return absl::OkStatus();
  }

  // On the host.
  std::vector<at::Tensor> Gradients() const {
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : network_->tensors().parameters()) {
      if (parameter.grad().defined()) gradients.push_back(parameter.grad().cpu());
    }
    return gradients;
  }

  // As a share of their length, as one vector.
  static double Apart(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
    double apart = 0, length = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      apart += at::sub(a[i], b[i]).square().sum(at::kDouble).item().toDouble();
      length += a[i].square().sum(at::kDouble).item().toDouble();
    }
    return std::sqrt(apart / length);
  }

  absl::StatusOr<Outcome> OutcomeOf(const Step& step) const {
    start_->Rewind();
    const absl::StatusOr<StepReport> report = step();
    if (!report.ok()) return report.status();
    return Outcome::Of(network_->tensors(), report->loss, device_->device());
  }

  absl::Status AddOutcome(const Step& step, ReportRow* row) const {
    const absl::StatusOr<Outcome> planned = OutcomeOf(step);
    if (!planned.ok()) return planned.status();
    row->Add("equal", *planned == *plain_).Add("plain_repeats", plain_repeats_);
    row->Add("gradients", planned->gradients.ToHex().substr(0, 16));
    if (plain_repeats_) return absl::OkStatus();
    double nearest = std::numeric_limits<double>::infinity();
    const std::vector<at::Tensor> gradients = Gradients();
    for (const auto& plain : gradients_) nearest = std::min(nearest, Apart(plain, gradients));
    row->Add("plain_spread", spread_).Add("from_plain", nearest);
    return absl::OkStatus();
  }

  absl::Status AddMemory(const Step& step, const Simulation& prediction, ReportRow* row) const {
    MemoryMeter* const meter = device_->meter();
    report_device_->EmptyCache();
    const Bytes before = meter->block_bytes();
    const int64_t waits = report_device_->waits();
    const absl::StatusOr<StepReport> report = step();
    if (!report.ok()) return report.status();
    const int64_t planned_waits = report_device_->waits() - waits;
    // A chain's input is there before the step, and counts.
    const Bytes input = is_chain() ? std::get<Chain>(problem()).activation(0) : Bytes(0);
    // By the meter of the device that the plan runs on, which may copy.
    const Bytes blocks = report->peak_blocks - before + input;
    row->Add("peak", report->peak).Add("allocated_peak", blocks);
    row->Add("reserved_peak", report->peak_reserved).Add("kept", before);
    row->Add("peak_of_prediction",
             static_cast<double>(blocks.value()) / static_cast<double>(prediction.peak.value()));
    const int64_t plain_start = report_device_->waits();
    const absl::StatusOr<StepReport> plain = network_->Plain();
    if (!plain.ok()) return plain.status();
    row->Add("plain_peak", plain->peak);
    row->Add("waits_beyond_plain", planned_waits - (report_device_->waits() - plain_start));
    return absl::OkStatus();
  }

  // Microseconds from the start of the step on, a line an instruction.
  absl::Status Trace(const Way& way) const {
    if (effort_.traces.empty()) return absl::OkStatus();
    std::vector<TimelinePoint> predicted;
    const Instance instance = DeviceFor(way) != nullptr ? Instance(problem(), link()) : problem();
    const auto run = Evaluator(instance).Run(way.schedule, &predicted);
    if (!run.ok()) return run.status();
    Later<MeasuredStep> later;
    const auto step = network_->Planned(problem(), way.schedule, DeviceFor(way), &later);
    if (!step.ok()) return step.status();
    for (int i = 0; i < 2; ++i) {  // the first one warms up
      const absl::StatusOr<StepReport> report = (*step)();
      if (!report.ok()) return report.status();
    }
    const MeasuredStep& measured = later.Get();
    std::ofstream file(TracePath(way.id, ".trace"));
    file << "predicted start\tend\tmeasured start\tend\tinstruction\n";
    for (size_t i = 0; i < way.schedule.size(); ++i) {
      for (const Nanos time : {predicted[i].start, predicted[i].end, measured.instructions[i].start,
                               measured.instructions[i].end}) {
        file << time.value() / 1000 << '\t';
      }
      file << ToString(way.schedule[i]) << '\n';
    }
    if (file) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot write into ", effort_.traces));
  }

  std::string TracePath(const std::string& id, const std::string& end) const {
    return absl::StrCat(effort_.traces, "/", absl::StrReplaceAll(id, {{"/", "_"}, {"%", ""}}), end);
  }

  // The first step keeps the device busy while the host begins the second one.
  absl::Status TraceKernels(const std::string& id, const Step& step) const {
    if (effort_.traces.empty() || !effort_.trace_kernels) return absl::OkStatus();
    return report_device_->TraceKernels(TracePath(id, ".json"), [&] {
      for (int i = 0; i < 2; ++i) {
        const absl::StatusOr<StepReport> report = step();
        if (!report.ok()) return report.status();
      }
      return absl::OkStatus();
    });
  }

  absl::Status AddTimes(const Step& step, const Simulation& prediction, ReportRow* row) const {
    const absl::StatusOr<std::vector<StepTimes>> times =
        TakeTurns({[this] { return network_->Plain(); }, step}, effort_.warmups, effort_.rounds,
                  /*before=*/report_device_->is_gpu() ? 1 : 0);
    if (!times.ok()) return times.status();
    const Nanos measured = Median((*times)[1].wall);
    const Spread throughput = SpreadOf(Ratios((*times)[0].wall, (*times)[1].wall));
    row->Add("step", measured).Add("plain_step", Median((*times)[0].wall));
    row->Add("predicted_step", prediction.makespan);
    row->Add("step_of_prediction", static_cast<double>(measured.value()) /
                                       static_cast<double>(prediction.makespan.value()));
    row->Add("throughput_of_plain", throughput.median);
    row->Add("throughput_low", throughput.low).Add("throughput_high", throughput.high);
    return absl::OkStatus();
  }

  const ReportEffort effort_;
  ReportDevice* const report_device_;
  std::string plain_id_;  // of the trace of its plain steps
  int64_t batch_ = 0;
  std::unique_ptr<ExecutionDevice> device_;   // copies nothing
  std::unique_ptr<ExecutionDevice> copying_;  // by the measured link
  std::unique_ptr<TrainedNetwork> network_;
  std::optional<Profile> profile_;
  std::optional<Rewinder> start_;
  std::optional<Outcome> plain_;
  bool plain_repeats_ = false;
  // Of plain steps, where they do not repeat, and how far these are apart.
  std::vector<std::vector<at::Tensor>> gradients_;
  double spread_ = 0;
};

class TrainingRows {
 public:
  TrainingRows(const ReportedNetwork& network, const ReportEffort& effort, ReportDevice* device,
               ReportFile* file)
      : network_(network), effort_(effort), device_(device), file_(file) {}

  absl::Status Add() {
    absl::Status status = AddPlans();
    if (status.ok()) status = AddSelective();
    return status;
  }

 private:
  std::string Id(const std::string& way) const { return absl::StrCat(network_.name, "/", way); }
  static std::string BudgetText(std::optional<double> share) {
    return share ? absl::StrCat(std::lround(*share * 100), "%") : "least";
  }

  absl::Status AddPlans() {
    auto begun = TrainingMeasurement::Begin(network_, network_.form, effort_, device_);
    if (!begun.ok()) return begun.status();
    TrainingMeasurement* const measurement = begun->get();
    for (const bool may_move : {false, true}) {
      absl::Status status = AddFrontier(measurement, may_move);
      if (!status.ok()) return status;
    }
    if (network_.form != Form::kChain) return absl::OkStatus();
    return AddRow(measurement, Id("checkpoint_sequential"), FastestSegments(*measurement));
  }

  // All budgets of one kind of plans.
  absl::Status AddFrontier(TrainingMeasurement* measurement, bool may_move) {
    const std::string kind = may_move ? "joint" : "recompute";
    const StopToken stop(std::chrono::steady_clock::now() + effort_.patience);
    PlanOptions options;
    options.solver = may_move ? "joint" : "";
    options.solve.stop = &stop;
    const Instance instance(measurement->problem(),
                            may_move ? std::optional(measurement->link()) : std::nullopt);
    const absl::StatusOr<Frontier> frontier = MakeFrontier(instance, options);
    for (const std::optional<double> share : {std::optional(kShares[0]), std::optional(kShares[1]),
                                              std::optional(kShares[2]), std::optional<double>()}) {
      const std::string id = Id(absl::StrCat(kind, "/", BudgetText(share)));
      absl::Status status =
          AddRow(measurement, id, WayAt(frontier, instance, share, options.solver));
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Way> WayAt(const absl::StatusOr<Frontier>& frontier, const Instance& instance,
                            std::optional<double> share, const std::string& solver) const {
    const absl::StatusOr<Plan> plan = absl::IsDeadlineExceeded(frontier.status())
                                          ? PlanWithin(instance, share, solver)
                                          : PlanOf(frontier, instance, share);
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) {
      return absl::NotFoundError(absl::StrCat("no plan: the least is ",
                                              ToString(plan->bounds.least_budget), ", ",
                                              ToString(plan->budget), " were asked for"));
    }
    const absl::StatusOr<Simulation> prediction = Evaluator(instance).Run(plan->schedule);
    if (!prediction.ok()) return prediction.status();
    return Way{"", plan->provenance.solver, plan->budget, plan->schedule, *prediction};
  }

  static absl::StatusOr<Plan> PlanOf(const absl::StatusOr<Frontier>& frontier,
                                     const Instance& instance, std::optional<double> share) {
    if (!frontier.ok()) return frontier.status();
    const absl::StatusOr<Simulation> plain = instance.store_all();
    if (!plain.ok()) return plain.status();
    const bool has_points = !frontier->points().empty();
    const Bytes least = has_points ? frontier->points().front().peak : plain->peak;
    return frontier->PlanAt(share ? ShareOf({*share}, plain->peak) : least);
  }

  // Where there is no time for all budgets at once, one by one: a search that is cut off has a plan all the same.
  absl::StatusOr<Plan> PlanWithin(const Instance& instance, std::optional<double> share,
                                  const std::string& solver) const {
    const StopToken stop(std::chrono::steady_clock::now() + effort_.patience);
    PlanOptions options;
    options.solver = solver;
    options.solve.stop = &stop;
    const Budget asked = share ? Budget(ShareOfStoreAll{*share}) : Budget(LeastBudget{});
    const absl::StatusOr<Bytes> budget = ResolveBudget(instance, asked, options);
    if (!budget.ok()) return budget.status();
    return MakePlan(instance, *budget, options);
  }

  static absl::StatusOr<Way> FastestSegments(const TrainingMeasurement& measurement) {
    const Chain& chain = std::get<Chain>(measurement.problem());
    const int most = std::min(chain.length(), static_cast<int>(2 * std::sqrt(chain.length())));
    absl::StatusOr<Way> fastest = absl::NotFoundError("too few stages for two segments");
    for (int segments = 2; segments <= most; ++segments) {
      Schedule schedule = SequentialSchedule(chain, segments);
      const absl::StatusOr<Simulation> run = Evaluator(chain).Run(schedule);
      if (!run.ok()) return run.status();
      if (fastest.ok() && fastest->prediction.makespan <= run->makespan) continue;
      fastest = Way{"", absl::StrCat(segments, " segments"), run->peak, std::move(schedule), *run};
    }
    return fastest;
  }

  absl::Status AddSelective() {
    const std::string id = Id("selective");
    if (file_->Has(id)) return absl::OkStatus();
    auto begun = TrainingMeasurement::Begin(network_, Form::kGraph, effort_, device_);
    if (!begun.ok()) return begun.status();
    const Graph& graph = std::get<Graph>((*begun)->problem());
    Schedule schedule = SelectiveSchedule((*begun)->described(), graph);
    const absl::StatusOr<Simulation> run = Evaluator(graph).Run(schedule);
    if (!run.ok()) return file_->AppendError(id, run.status());
    return AddRow(begun->get(), id, Way{"", "selective", run->peak, std::move(schedule), *run});
  }

  absl::Status AddRow(TrainingMeasurement* measurement, const std::string& id,
                      absl::StatusOr<Way> way) {
    if (file_->Has(id)) return absl::OkStatus();
    // No plan is an answer, too.
    if (absl::IsNotFound(way.status())) {
      return file_->Append(ReportRow(id).Add("no_plan", std::string(way.status().message())));
    }
    if (!way.ok()) return file_->AppendError(id, way.status());
    way->id = id;
    const absl::StatusOr<ReportRow> row = measurement->Measure(*way);
    return row.ok() ? file_->Append(*row) : file_->AppendError(id, row.status());
  }

  const ReportedNetwork& network_;
  const ReportEffort& effort_;
  ReportDevice* const device_;
  ReportFile* const file_;
};

}  // namespace

absl::StatusOr<MeasuredTransfers> MeasureReportedLink(const ReportEffort& effort,
                                                      ReportDevice* device) {
  constexpr Bytes kHostMemory(int64_t{64} << 20);
  const auto made = device->Make(LinkWith(kHostMemory));
  if (!made.ok()) return made.status();
  absl::StatusOr<MeasuredTransfers> measured = MeasureTransfers(made->get(), effort.transfers);
  if (absl::IsFailedPrecondition(measured.status()) && effort.assumed_link) {
    return *effort.assumed_link;
  }
  return measured;
}

absl::Status AddLinkRow(const ReportEffort& effort, ReportDevice* device, ReportFile* file) {
  if (file->Has("link")) return absl::OkStatus();
  const absl::StatusOr<MeasuredTransfers> link = MeasureReportedLink(effort, device);
  if (!link.ok()) return file->AppendError("link", link.status());
  const auto made = device->Make(LinkWith(Bytes(0)));
  if (!made.ok()) return made.status();
  const Device hardware = (*made)->Hardware();
  ReportRow row("link");
  row.Add("device", hardware.model).Add("memory", hardware.memory);
  row.Add("to_host_bytes_per_second", link->model.to_host.bytes_per_second);
  row.Add("to_host_latency", link->model.to_host.latency);
  row.Add("to_device_bytes_per_second", link->model.to_device.bytes_per_second);
  row.Add("to_device_latency", link->model.to_device.latency);
  row.Add("both_ways", link->both_ways).Add("computing", link->computing);
  return file->Append(row);
}

absl::Status AddTrainingRows(const ReportedNetwork& network, const ReportEffort& effort,
                             ReportDevice* device, ReportFile* file) {
  return TrainingRows(network, effort, device, file).Add();
}

}  // namespace stowage
