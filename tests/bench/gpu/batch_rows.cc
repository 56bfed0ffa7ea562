#include "tests/bench/gpu/batch_rows.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

// Of the memory left, as far as the allocator can hand it out: one after the other.
constexpr double kTriedShares[] = {1, 0.94, 0.85};
constexpr int64_t kMostDoublings = 12;

// How long a step took where the batch was trained; nothing where it does not fit.
using Fit = absl::StatusOr<std::optional<Nanos>>;

// What a batch does not fit into.
bool IsTooLittle(const absl::Status& status) { return absl::IsResourceExhausted(status); }

class BatchSearch {
 public:
  BatchSearch(const ReportedNetwork& network, const ReportEffort& effort, ReportDevice* device,
              const TransferModel& link)
      : network_(network),
        effort_(effort),
        device_(device),
        link_(WithHostMemory(link)),
        memory_(device->LimitMemory(network.test_memory)) {}

  absl::StatusOr<ReportRow> Find(const std::string& id, const std::string& way) {
    // Host memory is locked once.
    if (way == "joint" && copying_ == nullptr) {
      auto made = device_->Make(link_);
      if (!made.ok()) return made.status();
      copying_ = *std::move(made);
    }
    Bounds found;
    for (int i = 0; i < kMostDoublings && found.too_many == 0; ++i) {
      absl::Status status = Try(start_ << i, way, &found);
      if (!status.ok()) return status;
    }
    while (found.too_many - found.fits > 1 && (found.too_many - found.fits) * 8 > found.fits) {
      absl::Status status = Try((found.fits + found.too_many) / 2, way, &found);
      if (!status.ok()) return status;
    }
    // Plans fit where plain training does.
    start_ = std::max(start_, found.fits);
    ReportRow row(id);
    row.Add("largest_batch", found.fits).Add("refused_batch", found.too_many);
    row.Add("memory", memory_).Add("refused_for", refusal_);
    if (found.fits == 0) return row;
    row.Add("step", found.step);
    row.Add("samples_per_second",
            static_cast<double>(found.fits) * 1e9 / static_cast<double>(found.step.value()));
    return row;
  }

 private:
  struct Bounds {
    int64_t fits = 0;
    int64_t too_many = 0;  // 0: none is known
    Nanos step;            // at what fits
  };

  absl::Status Try(int64_t batch, const std::string& way, Bounds* found) {
    const Fit fit = Train(batch, way);
    device_->EmptyCache();
    if (!fit.ok()) return fit.status();
    (*fit ? found->fits : found->too_many) = batch;
    if (*fit) found->step = **fit;
    return absl::OkStatus();
  }

  static TransferModel WithHostMemory(TransferModel link) {
    link.host_memory = kMostHostMemory;
    return link;
  }

  Fit Train(int64_t batch, const std::string& way) {
    const bool may_move = way == "joint";
    auto device = device_->Make(Nothing());
    if (!device.ok()) return device.status();
    NetworkChoice choice = network_.choice;
    choice.batch = batch;
    const auto network = Make(choice, device->get());
    if (!network.ok()) return NoneIfTooLittle(network.status());
    if (way == "plain") return TimeOf([&] { return (*network)->Plain(); });
    return TrainByPlan(**network, device->get(), may_move);
  }

  absl::StatusOr<std::unique_ptr<TrainedNetwork>> Make(const NetworkChoice& choice,
                                                       ExecutionDevice* device) const {
    try {
      return TrainedNetwork::Make(choice, network_.form, device);
    } catch (...) {
      return CurrentExceptionToStatus(network_.name, absl::StatusCode::kInternal);
    }
  }

  Fit TrainByPlan(const TrainedNetwork& network, ExecutionDevice* device, bool may_move) {
    ProfileOptions options;
    options.repeats = 1;
    options.warmup = 0;
    const absl::StatusOr<Profile> profile = network.Measure(options);
    if (!profile.ok()) return NoneIfTooLittle(profile.status());
    const Instance instance(profile->problem, may_move ? std::optional(link_) : std::nullopt);
    for (const double share : kTriedShares) {
      device_->EmptyCache();
      const Bytes left = memory_ - device->meter()->block_bytes();
      const Bytes budget(static_cast<int64_t>(static_cast<double>(left.value()) * share));
      Fit fit = TrainWithin(network, instance, budget, may_move ? copying_.get() : nullptr);
      if (!fit.ok() || *fit) return fit;
    }
    return None(refusal_);
  }

  Fit TrainWithin(const TrainedNetwork& network, const Instance& instance, Bytes budget,
                  ExecutionDevice* copying) {
    const StopToken stop(std::chrono::steady_clock::now() + effort_.patience);
    PlanOptions planning;
    planning.solver = copying != nullptr ? "joint" : "";
    planning.solve.stop = &stop;
    const absl::StatusOr<Plan> plan = MakePlan(instance, budget, planning);
    if (!plan.ok()) return plan.status();
    if (plan->status != PlanStatus::kFound) return None(plan->explanation);
    const absl::StatusOr<Step> step = network.Planned(instance.problem(), plan->schedule, copying);
    if (!step.ok()) return step.status();
    return TimeOf(*step);
  }

  // The second step's: the first one makes the allocator's blocks.
  Fit TimeOf(const Step& step) {
    Nanos time;
    for (int i = 0; i < 2; ++i) {
      const absl::StatusOr<StepReport> report = step();
      if (!report.ok()) return NoneIfTooLittle(report.status());
      time = report->wall_time;
    }
    return std::optional<Nanos>(time);
  }

  Fit NoneIfTooLittle(const absl::Status& status) {
    if (!IsTooLittle(status)) return status;
    return None(std::string(status.message()));
  }
  Fit None(const std::string& why) {
    refusal_ = why.substr(0, why.find('\n'));
    return std::optional<Nanos>();
  }

  static TransferModel Nothing() {
    const CopyCost cost{int64_t{1} << 30, Nanos(0)};
    return {cost, cost, /*full_duplex=*/true, Bytes(0)};
  }

  const ReportedNetwork& network_;
  const ReportEffort& effort_;
  ReportDevice* const device_;
  const TransferModel link_;
  const Bytes memory_;
  std::unique_ptr<ExecutionDevice> copying_;
  int64_t start_ = network_.choice.batch;  // the first that is tried
  std::string refusal_;                    // the last one, in words
};

}  // namespace

absl::Status AddBatchRows(const ReportedNetwork& network, const ReportEffort& effort,
                          ReportDevice* device, ReportFile* file) {
  const absl::StatusOr<MeasuredTransfers> link = MeasureReportedLink(effort, device);
  if (!link.ok()) return link.status();
  BatchSearch search(network, effort, device, link->model);
  for (const char* way : {"plain", "recompute", "joint"}) {
    const std::string id = absl::StrCat(network.name, "/batch/", way);
    if (file->Has(id)) continue;
    const absl::StatusOr<ReportRow> row = search.Find(id, way);
    absl::Status status = row.ok() ? file->Append(*row) : file->AppendError(id, row.status());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stowage
