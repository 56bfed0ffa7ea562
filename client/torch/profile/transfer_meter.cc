#include "client/torch/profile/transfer_meter.h"

#include <ATen/Functions.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/offload/host_pool.h"
#include "client/torch/offload/stage_timer.h"
#include "client/torch/profile/line_fit.h"
#include "client/torch/profile/median.h"

namespace stowage {
namespace {

constexpr int64_t kSmallest = int64_t{64} << 10;
// Sizes are powers of two.
constexpr int64_t kLeastSizes = 4;
constexpr Nanos kLongCopy(10000000);  // larger ones are not needed
constexpr Nanos kRow(2000000);        // copies in a row take about so long
constexpr int64_t kLongestRow = 16;
// Of the time of the copies that compute is given work for.
constexpr double kLoad = 0.75;
// Compute that waits for less was busy longer than the copies.
constexpr double kLeastWait = 0.05;

double Ratio(Nanos a, Nanos b) {
  return static_cast<double>(a.value()) / static_cast<double>(std::max<int64_t>(b.value(), 1));
}

std::function<void()> Products(c10::Device device) {
  const int64_t n = device.is_cpu() ? 128 : 1024;
  const auto options = at::TensorOptions().device(device).dtype(at::kFloat);
  const at::Tensor a = at::ones({n, n}, options);
  at::Tensor product = at::empty({n, n}, options);
  return [a, product]() mutable { at::mm_out(product, a, a); };
}

// Where copies of one direction go from and to.
struct Ends {
  Ends(ExecutionDevice* device, size_t bytes)
      : on_device(at::zeros({static_cast<int64_t>(bytes)},
                            at::TensorOptions().device(device->device()).dtype(at::kByte))),
        on_host(device->host()->Allocate(bytes)) {}

  at::Tensor on_device;
  HostPool::Block on_host;
};

// Copies of one size, one after the other.
struct Row {
  Stream direction;
  size_t bytes;
  int64_t copies = 1;
  int64_t loads = 0;         // pieces of work beside them
  std::vector<Nanos> times;  // of one copy
};

class TransferRun {
 public:
  TransferRun(ExecutionDevice* device, const TransferOptions& options, size_t largest)
      : device_(device),
        options_(options),
        largest_(largest),
        timer_(device->MakeTimer()),
        load_(options.load ? options.load : Products(device->device())),
        out_(device, largest),
        in_(device, largest) {}

  absl::StatusOr<MeasuredTransfers> Run() {
    const Nanos load = LoadTime();
    for (const Stream direction : {Stream::kToHost, Stream::kToDevice}) FindRows(direction, load);
    for (int i = 0; i < options_.repeats; ++i) {
      for (Row& row : rows_) MeasureBusy(&row);
      MeasureBothWays();
    }
    MeasuredTransfers measured;
    measured.model.host_memory = device_->host()->limit();
    absl::Status status = Fit(Stream::kToHost, &measured.model.to_host, &measured.to_host_residual);
    if (status.ok()) {
      status = Fit(Stream::kToDevice, &measured.model.to_device, &measured.to_device_residual);
    }
    if (!status.ok()) return status;
    measured.both_ways = Median(both_ways_);
    measured.model.full_duplex = 2 * found_full_ > options_.repeats;
    measured.computing = Ratio(busy_, total_);
    return measured;
  }

 private:
  struct Taken {
    Nanos busy;  // until compute had done its work
    Nanos total;
  };

  std::unique_ptr<DeviceCopy> Start(Stream direction, size_t bytes) {
    const bool to_host = direction == Stream::kToHost;
    const Ends& ends = to_host ? out_ : in_;
    auto* const there = static_cast<std::byte*>(ends.on_device.data_ptr());
    std::vector<CopyPiece> pieces;
    ends.on_host.ForEachPiece(0, bytes, [&](std::byte* here, size_t offset, size_t size) {
      pieces.push_back(to_host ? CopyPiece{here, there + offset, size}
                               : CopyPiece{there + offset, here, size});
    });
    return device_->StartCopy(direction, pieces);
  }

  // The row once, with `loads` pieces of work.
  Taken Time(const Row& row, int64_t loads) {
    std::vector<std::unique_ptr<DeviceCopy>> copies;
    timer_->Start();
    for (int64_t i = 0; i < row.copies; ++i) copies.push_back(Start(row.direction, row.bytes));
    for (int64_t i = 0; i < loads; ++i) load_();
    timer_->Stop();
    timer_->Start();
    for (const auto& copy : copies) copy->Wait();
    timer_->Stop();
    const std::vector<Nanos> times = timer_->Collect();
    return {times[0], times[0] + times[1]};
  }

  Nanos LoadTime() {
    load_();  // warms up
    for (int i = 0; i < options_.repeats; ++i) {
      timer_->Start();
      load_();
      timer_->Stop();
    }
    return Median(timer_->Collect());
  }

  // Sizes up to where copies take long, how many of each are a row, and how much work is about as long.
  void FindRows(Stream direction, Nanos load) {
    int64_t found = 0;
    Nanos one;
    for (size_t bytes = kSmallest; bytes <= largest_; bytes *= 2, ++found) {
      if (found >= kLeastSizes && one > kLongCopy) return;
      Row row{direction, bytes, 1, 0, {}};
      Time(row, 0);  // warms up
      one = Time(row, 0).total;
      row.copies = std::clamp(static_cast<int64_t>(Ratio(kRow, one)), int64_t{1}, kLongestRow);
      row.loads = static_cast<int64_t>(kLoad * Ratio(Time(row, 0).total, load));
      rows_.push_back(std::move(row));
    }
  }

  void MeasureBusy(Row* row) {
    Taken taken = Time(*row, row->loads);
    while (row->loads > 0 && Ratio(taken.total - taken.busy, taken.total) < kLeastWait) {
      row->loads /= 2;
      taken = Time(*row, row->loads);
    }
    row->times.push_back(Nanos(taken.total.value() / row->copies));
    if (row->loads > 0) busy_ += taken.busy;
    total_ += taken.total;
  }

  // Copies of the largest size that both directions had, alone and at once.
  void MeasureBothWays() {
    size_t bytes = 0;
    for (const Row& row : rows_) bytes = std::max(bytes, row.bytes);
    const Nanos out = Time({Stream::kToHost, bytes, 1, 0, {}}, 0).total;
    const Nanos in = Time({Stream::kToDevice, bytes, 1, 0, {}}, 0).total;
    timer_->Start();
    const auto first = Start(Stream::kToHost, bytes);
    const auto second = Start(Stream::kToDevice, bytes);
    first->Wait();
    second->Wait();
    timer_->Stop();
    const Nanos both = timer_->Collect()[0];
    both_ways_.push_back(Ratio(both, out + in));
    // In the middle between the slower one alone and one after the other.
    const Nanos middle((std::max(out, in) + out + in).value() / 2);
    if (both < middle) ++found_full_;
  }

  absl::Status Fit(Stream direction, CopyCost* cost, double* residual) const {
    std::vector<Point> points;
    for (const Row& row : rows_) {
      if (row.direction != direction) continue;
      points.push_back(
          {static_cast<double>(row.bytes), static_cast<double>(Median(row.times).value())});
    }
    const Line line = FitLine(points);
    if (!(line.slope > 0)) {
      return absl::FailedPreconditionError(
          "the link cannot be measured: copies take no longer the larger they are");
    }
    cost->bytes_per_second = std::max<int64_t>(std::llround(1e9 / line.slope), 1);
    cost->latency = Nanos(std::max<int64_t>(std::llround(line.intercept), 0));
    for (const Point& point : points) {
      *residual = std::max(*residual, std::abs(point.y / line.at(point.x) - 1));
    }
    return absl::OkStatus();
  }

  ExecutionDevice* const device_;
  const TransferOptions& options_;
  const size_t largest_;
  const std::unique_ptr<StageTimer> timer_;
  const std::function<void()> load_;
  Ends out_, in_;
  std::vector<Row> rows_;
  std::vector<double> both_ways_;
  int found_full_ = 0;
  Nanos busy_, total_;
};

}  // namespace

absl::StatusOr<MeasuredTransfers> MeasureTransfers(ExecutionDevice* device,
                                                   const TransferOptions& options) {
  static constexpr int64_t kLeast = kSmallest << (kLeastSizes - 1);
  if (options.repeats < 1 || options.largest < Bytes(kLeast)) {
    return absl::InvalidArgumentError(absl::StrCat("repeats must be >= 1 and largest >= ", kLeast,
                                                   ", not ", options.repeats, " and ",
                                                   options.largest.value()));
  }
  if (device->host() == nullptr) {
    return absl::FailedPreconditionError(
        "the device has no link to host memory to be measured, and no host memory for copies");
  }
  const Bytes host = device->host()->limit();
  if (host < Bytes(2 * kLeast)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "measuring a link takes ", 2 * kLeast, " bytes of host memory, there are ", host.value()));
  }
  const int64_t largest = std::min(options.largest.value(), host.value() / 2);
  try {
    const at::NoGradGuard no_grad;
    return TransferRun(device, options, static_cast<size_t>(largest)).Run();
  } catch (...) {
    return CurrentExceptionToStatus("measuring transfers", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
