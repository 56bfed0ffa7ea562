#include "client/torch/profile/transfer_meter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/offload/host_link.h"
#include "client/torch/offload/simulated_device.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/line_fit.h"
#include "tests/client/torch/profile/clocked_device.h"
#include "tests/support/units.h"

namespace stowage {
namespace {

using testing::HasSubstr;

HostPool::Source SystemMemory() {
  return {[](size_t n) { return std::aligned_alloc(64, n); }, [](void* data) { std::free(data); }};
}

// A link whose copies take as long as it says by the clock of the device, and longer while that computes.
class LinkedDevice : public ClockedDevice {
 public:
  explicit LinkedDevice(const TransferModel& link, double slowed = 0)
      : link_(link), slowed_(slowed), host_(link.host_memory, Bytes(0), SystemMemory()) {}

  const TransferModel* link() const override { return &link_; }
  HostPool* host() override { return &host_; }

  // Compute for that long, during which every copy under way falls back.
  void Advance(Nanos time) override {
    const Nanos back(static_cast<int64_t>(static_cast<double>(time.value()) * slowed_));
    for (const std::shared_ptr<Nanos>& end : ends_) {
      if (*end > now()) *end += back;
    }
    ClockedDevice::Advance(time);
  }

  std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                        const std::vector<CopyPiece>& pieces) override {
    std::shared_ptr<Nanos>& busy = direction == Stream::kToHost || !link_.full_duplex ? out_ : in_;
    const Nanos start = busy ? std::max(now(), *busy) : now();
    const CopyCost& cost = direction == Stream::kToHost ? link_.to_host : link_.to_device;
    const Nanos time = CopyTime(cost, Bytes(static_cast<int64_t>(pieces[0].bytes)));
    busy = std::make_shared<Nanos>(start + time);
    const auto past = [this](const std::shared_ptr<Nanos>& end) { return *end <= now(); };
    ends_.erase(std::remove_if(ends_.begin(), ends_.end(), past), ends_.end());
    ends_.push_back(busy);
    return std::make_unique<Copy>(this, busy);
  }

 private:
  struct Copy final : DeviceCopy {
    Copy(LinkedDevice* of, std::shared_ptr<Nanos> at) : device(of), end(std::move(at)) {}
    void Wait() override {
      if (*end > device->now()) device->ClockedDevice::Advance(*end - device->now());
    }
    LinkedDevice* const device;
    const std::shared_ptr<Nanos> end;
  };

  const TransferModel link_;
  const double slowed_;
  HostPool host_;
  std::shared_ptr<Nanos> out_, in_;  // when the last copy of the channel ends
  std::vector<std::shared_ptr<Nanos>> ends_;
};

TransferModel Link(int64_t to_host, int64_t to_device, bool full_duplex) {
  return {{to_host, Nanos(8000)}, {to_device, Nanos(15000)}, full_duplex, Bytes(256 * kMiB)};
}

MeasuredTransfers Measure(LinkedDevice* device, Nanos load = Nanos(2000)) {
  TransferOptions options;
  options.load = [=] { device->Advance(load); };
  const auto measured = MeasureTransfers(device, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  return measured.value();
}

void ExpectNear(const CopyCost& measured, const CopyCost& link) {
  const auto rate = static_cast<double>(link.bytes_per_second);
  EXPECT_NEAR(static_cast<double>(measured.bytes_per_second), rate, 1e-3 * rate);
  const auto latency = static_cast<double>(link.latency.value());
  EXPECT_NEAR(static_cast<double>(measured.latency.value()), latency, 0.02 * latency);
}

TEST(MeasureTransfers, FindsTheLinkThatThereIs) {
  for (const bool full_duplex : {false, true}) {
    for (const int64_t rate : {40000000, 1200000000}) {
      SCOPED_TRACE(rate);
      const TransferModel link = Link(rate * 10, rate * 7, full_duplex);
      LinkedDevice device(link);
      const Bytes live = device.meter()->current();
      const MeasuredTransfers measured = Measure(&device);
      ExpectNear(measured.model.to_host, link.to_host);
      ExpectNear(measured.model.to_device, link.to_device);
      EXPECT_EQ(measured.model.full_duplex, full_duplex);
      EXPECT_EQ(measured.model.host_memory, link.host_memory);
      EXPECT_LT(measured.to_host_residual, 0.01);
      EXPECT_LT(measured.to_device_residual, 0.01);
      EXPECT_NEAR(measured.both_ways, full_duplex ? 0.59 : 1, 0.01);
      // Most of the time there was work.
      EXPECT_GT(measured.computing, 0.6);
      EXPECT_LT(measured.computing, 0.8);
      EXPECT_EQ(device.meter()->current(), live);
      EXPECT_EQ(device.host()->held(), Bytes(0));
    }
  }
}

TEST(MeasureTransfers, CopiesAreAsSlowAsTheyAreBesideCompute) {
  const TransferModel link = Link(10000000000, 10000000000, true);
  LinkedDevice device(link, /*slowed=*/1);
  const MeasuredTransfers measured = Measure(&device);
  // What takes t alone has work for 3/4 t beside it.
  EXPECT_NEAR(static_cast<double>(measured.model.to_host.bytes_per_second), 1e10 / 1.75, 1e8);
}

TEST(MeasureTransfers, WorkThatOutlastsACopyIsNotCountedAsIts) {
  const TransferModel link = Link(10000000000, 10000000000, false);
  LinkedDevice device(link);
  // Longer than all but the largest copies; and one that is estimated short and takes long.
  ExpectNear(Measure(&device, Nanos(900000)).model.to_host, link.to_host);
  TransferOptions options;
  int calls = 0;
  options.load = [&] { device.Advance(Nanos(calls++ < 6 ? 1000 : 100000)); };
  const auto measured = MeasureTransfers(&device, options);
  ASSERT_TRUE(measured.ok()) << measured.status();
  ExpectNear(measured->model.to_device, link.to_device);
}

TEST(MeasureTransfers, WhatCannotBeMeasuredIsRefused) {
  ClockedDevice none;
  EXPECT_EQ(MeasureTransfers(&none).status().code(), absl::StatusCode::kFailedPrecondition);
  TransferModel small = Link(1000, 1000, true);
  small.host_memory = Bytes(kMiB - 1);
  LinkedDevice device(small);
  EXPECT_THAT(std::string(MeasureTransfers(&device).status().message()), HasSubstr("1048575"));
  LinkedDevice linked(Link(1000, 1000, true));
  TransferOptions options;
  options.repeats = 0;
  EXPECT_EQ(MeasureTransfers(&linked, options).status().code(), absl::StatusCode::kInvalidArgument);
  options = {};
  options.largest = Bytes(kMiB / 2 - 1);
  EXPECT_EQ(MeasureTransfers(&linked, options).status().code(), absl::StatusCode::kInvalidArgument);
  // All host memory is taken.
  const HostPool::Block block = linked.host()->Allocate(static_cast<size_t>(250 * kMiB));
  const absl::Status status = MeasureTransfers(&linked).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
}

TEST(MeasureTransfers, AProfileHasTheLinkThatWasMeasured) {
  ChainModel model("one");
  model.AddStage("fc", "linear", torch::nn::Linear(4, 4));
  model.SetLoss("sum", [](const at::Tensor& y, const at::Tensor&) { return y.sum(); });
  const TransferModel link = Link(int64_t{8} << 30, int64_t{8} << 30, true);
  auto device = SimulatedDevice::Create(link).value();
  ProfileReport report;
  ProfileOptions options;
  options.bytes_only = true;
  options.device = device.get();
  options.report = &report;
  const at::Tensor input = torch::ones({2, 4});
  const Profile without = ProfileChain(model, input, torch::zeros({1}), options).value();
  EXPECT_FALSE(TransfersOf(without.device).has_value());
  EXPECT_FALSE(report.transfers.has_value());
  options.transfers = true;
  const auto with = ProfileChain(model, input, torch::zeros({1}), options);
  ASSERT_TRUE(with.ok()) << with.status();
  const std::optional<TransferModel> measured = TransfersOf(with->device);
  ASSERT_TRUE(measured.has_value());
  ASSERT_TRUE(report.transfers.has_value());
  EXPECT_EQ(measured->to_host.bytes_per_second, report.transfers->model.to_host.bytes_per_second);
  EXPECT_EQ(measured->to_device.latency, report.transfers->model.to_device.latency);
  EXPECT_EQ(measured->host_memory, link.host_memory);
  EXPECT_NE(with->device.duplex, Duplex::kUnspecified);
  options.device = nullptr;
  EXPECT_EQ(ProfileChain(model, input, torch::zeros({1}), options).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// Of which nobody knows how fast it is.
class UnmeasuredDevice final : public LinkedDevice {
 public:
  explicit UnmeasuredDevice(const TransferModel& real)
      : LinkedDevice(real), known_(std::nullopt, real.host_memory, SystemMemory()) {}

  const TransferModel* link() const override { return known_.link(); }
  HostPool* host() override { return known_.host(); }
  absl::Status SetLink(const TransferModel& link) override { return known_.SetLink(link); }

 private:
  HostLink known_;
};

TEST(MeasureTransfers, ADeviceWithoutALinkGetsTheOneThatWasMeasured) {
  const TransferModel real = Link(12000000000, 10000000000, true);
  UnmeasuredDevice device(real);
  EXPECT_EQ(device.link(), nullptr);
  TransferModel measured = Measure(&device).model;
  ExpectNear(measured.to_host, real.to_host);
  EXPECT_EQ(measured.host_memory, real.host_memory);
  measured.host_memory = real.host_memory + Bytes(1);
  EXPECT_EQ(device.SetLink(measured).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device.link(), nullptr);
  measured.host_memory = Bytes(kMiB);
  ASSERT_TRUE(device.SetLink(measured).ok());
  ASSERT_NE(device.link(), nullptr);
  EXPECT_EQ(device.link()->to_host.bytes_per_second, measured.to_host.bytes_per_second);
  measured.to_host.bytes_per_second = -1;
  EXPECT_EQ(device.SetLink(measured).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LinkedDevice(real).SetLink(real).code(), absl::StatusCode::kFailedPrecondition);
}

TEST(FitLine, ABadPointMovesNothing) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(0.5, 2);
  for (int round = 0; round < 200; ++round) {
    const Line line{100 * uniform(random), 3 * uniform(random)};
    std::vector<Point> points;
    for (double x = 64; x <= 64 * 1024; x *= 2) points.push_back({x, line.at(x)});
    points[random() % points.size()].y *= 5;
    std::shuffle(points.begin(), points.end(), random);
    const Line fitted = FitLine(points);
    EXPECT_NEAR(fitted.slope, line.slope, 1e-9 * line.slope);
    EXPECT_NEAR(fitted.intercept, line.intercept, 1e-6 * line.intercept);
  }
}

}  // namespace
}  // namespace stowage
