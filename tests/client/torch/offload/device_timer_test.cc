// The clock that each device makes (ExecutionDevice::MakeTimer), by times that it cannot fall below.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "client/torch/offload/device_use.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/later.h"
#include "client/torch/offload/stage_timer.h"
#include "tests/client/device/test_device.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/device/wait_count.h"

namespace stowage {
namespace {

class DeviceTimerTest : public testing::TestWithParam<std::string> {
 protected:
  DeviceTimerTest() : execution_(DeviceOrInstalled(device_.execution).value()) {}
  void SetUp() override { SKIP_IF_MISSING(device_); }

  // An interval of `milliseconds` and what the marks take: its start is passed before the host goes on. Clocks of a device
  // and the host may differ by a few parts in a thousand.
  void Interval(StageTimer* timer, int milliseconds) const {
    timer->Start();
    WaitFor(device_.device);
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    timer->Stop();
  }
  static void ExpectAtLeast(Nanos time, int milliseconds) {
    EXPECT_GE(time, Nanos(int64_t{milliseconds} * 990'000));
  }
  // Work that the device may be at when the host is further.
  void Work() const {
    at::Tensor x = torch::ones({64, 64}, device_.device);
    for (int i = 0; i < 20; ++i) x = x.matmul(x) / 64;
  }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
  ExecutionDevice* const execution_;
};

TEST_P(DeviceTimerTest, TimesComeInTheOrderOfTheIntervals) {
  const std::unique_ptr<StageTimer> timer = execution_->MakeTimer();
  EXPECT_TRUE(timer->Collect().empty());
  for (int pass = 0; pass < 2; ++pass) {
    const std::vector<int> intervals = {0, 4, 1, 8};
    for (const int milliseconds : intervals) Interval(timer.get(), milliseconds);
    const std::vector<Nanos> times = timer->Collect();
    ASSERT_EQ(times.size(), intervals.size());
    for (size_t i = 0; i < times.size(); ++i) ExpectAtLeast(times[i], intervals[i]);
    EXPECT_TRUE(timer->Passed());
    EXPECT_TRUE(timer->Collect().empty());
  }
}

TEST_P(DeviceTimerTest, StepsInFlightHaveTheirOwnTimesAndNobodyWaitsForThem) {
  const std::vector<int> steps = {8, 1, 4};
  std::vector<std::unique_ptr<StageTimer>> timers;
  for (const int milliseconds : steps) {
    timers.push_back(execution_->MakeTimer());
    Interval(timers.back().get(), milliseconds);
  }
  // As the host runs ahead of a device: all of them are given before one is looked at.
  const WaitCount waits(device_.device);
  for (const auto& timer : timers) {
    timer->Start();
    Work();
    timer->Stop();
    timer->Passed();
  }
  EXPECT_EQ(waits.count(), 0);
  WaitFor(device_.device);
  const int64_t waited = waits.count();
  // The last first.
  for (size_t i = timers.size(); i-- > 0;) {
    EXPECT_TRUE(timers[i]->Passed());
    const std::vector<Nanos> times = timers[i]->Collect();
    ASSERT_EQ(times.size(), 2U);
    ExpectAtLeast(times[0], steps[i]);
    EXPECT_GE(times[1], Nanos(0));
  }
  EXPECT_EQ(waits.count(), waited);
}

TEST_P(DeviceTimerTest, NothingIsCollectedOfAStepThatFails) {
  const std::unique_ptr<StageTimer> timer = execution_->MakeTimer();
  const auto fail = [&](bool queued) {
    queued ? timer->StartQueued() : timer->Start();
    Work();
    throw std::runtime_error("the step fails");
  };
  for (const bool queued : {false, true}) {
    const WaitCount waits(device_.device);
    EXPECT_THROW(fail(queued), std::runtime_error);
    EXPECT_TRUE(timer->Passed());  // there is nothing to be passed
    EXPECT_TRUE(timer->Collect().empty());
    EXPECT_EQ(waits.count(), 0);
    // The next step is as good as any; one that fails behind it takes nothing from it.
    Interval(timer.get(), 2);
    EXPECT_THROW(fail(queued), std::runtime_error);
    const std::vector<Nanos> times = timer->Collect();
    ASSERT_EQ(times.size(), 1U);
    ExpectAtLeast(times[0], 2);
  }
  WaitFor(device_.device);  // nothing is held back
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTimerTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// As late as a device may be.
TEST(DeviceTimer, PassesWhenTheDeviceDoes) {
  ExecutionDevice* const device = TrainingDeviceNamed("test").execution;
  const std::unique_ptr<StageTimer> timer = device->MakeTimer();
  TestDevice::Synchronize();
  TestDevice::compute().Hold();
  timer->Start();
  timer->Stop();
  EXPECT_FALSE(timer->Passed());
  TestDevice::compute().Resume();
  TestDevice::Synchronize();
  EXPECT_TRUE(timer->Passed());
  // One that is not waits to be.
  TestDevice::compute().Hold();
  timer->Start();
  timer->Stop();
  const WaitCount waits(device->device());
  EXPECT_EQ(timer->Collect().size(), 2U);
  EXPECT_EQ(waits.count(), 1);
}

TEST(LaterTest, IsReadOnceWhereItHasPassedOrSomebodyAsks) {
  int reads = 0;
  bool passed = true;
  const auto make = [&] {
    return Later<int>([&passed] { return passed; }, [&reads] { return ++reads; });
  };
  EXPECT_EQ(Later<int>().Get(), 0);
  EXPECT_TRUE(Later<int>(7).ready());
  const Later<int> at_once = make();
  EXPECT_EQ(reads, 1);
  passed = false;
  EXPECT_TRUE(at_once.ready());
  EXPECT_EQ(at_once, 1);
  const Later<int> later = make();
  const Later<int> copy = later;
  EXPECT_FALSE(copy.ready());
  EXPECT_EQ(reads, 1);
  EXPECT_EQ(later, 2);  // it would have waited
  EXPECT_TRUE(copy.ready());
  EXPECT_EQ(copy, 2);
  EXPECT_EQ(reads, 2);
}

TEST(LaterTest, AReadingThatFailedMayComeAgain) {
  int tries = 0;
  const Later<int> later([] { return false; },
                         [&tries]() -> int {
                           if (++tries == 1) throw std::runtime_error("the device fails");
                           return 5;
                         });
  EXPECT_THROW(later.Get(), std::runtime_error);
  EXPECT_FALSE(later.ready());
  EXPECT_EQ(later, 5);
}

TEST(LaterTest, NobodyWaitsForThoseWhoWait) {
  std::mutex device;
  device.lock();
  std::atomic<bool> reading{false};
  const Later<int> later([] { return false; },
                         [&] {
                           reading = true;
                           const std::lock_guard<std::mutex> done(device);
                           return 3;
                         });
  std::vector<std::thread> readers;
  std::atomic<int> sum{0};
  for (int i = 0; i < 3; ++i) readers.emplace_back([&] { sum += later.Get(); });
  while (!reading) std::this_thread::yield();
  EXPECT_FALSE(later.ready());  // or it would never end
  device.unlock();
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(sum, 9);
}

}  // namespace
}  // namespace stowage
