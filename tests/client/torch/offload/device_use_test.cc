#include "client/torch/offload/device_use.h"

#include <gtest/gtest.h>

#include <thread>

#include "client/torch/memory/memory_meter.h"
#include "solvers/model/units.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/held_backward.h"

namespace stowage {
namespace {

TEST(DeviceUse, OthersAreSeenWhetherTheyWereThereOrCame) {
  const c10::Device gpu(c10::DeviceType::CUDA, 1);
  const DeviceUse own(gpu);
  const DeviceUse of_another({c10::DeviceType::CUDA, 3});
  const DeviceUse within(gpu);
  const DeviceWatch alone(gpu);
  EXPECT_FALSE(alone.SawOthers());
  std::thread([&gpu] {
    const DeviceUse use({c10::DeviceType::CUDA, 2});
    EXPECT_TRUE(DeviceWatch(gpu).SawOthers());
  }).join();
  EXPECT_FALSE(alone.SawOthers());
  std::thread([&gpu] { const DeviceUse use(gpu); }).join();
  EXPECT_TRUE(alone.SawOthers());
  EXPECT_FALSE(DeviceWatch(gpu).SawOthers());
  // One within another ends, and the thread still steps.
  { const DeviceUse once_more(gpu); }
  std::thread([&gpu] { EXPECT_TRUE(DeviceWatch(gpu).SawOthers()); }).join();
}

// Autograd's thread for the device still holds what a backward took.
TEST(WaitForBackwards, WaitsUntilTheDevicesThreadHasLetGo) {
  const TrainingDevice& device = TrainingDeviceNamed("test");
  SKIP_IF_MISSING(device);
  WaitForBackwards(device.device);  // makes what it keeps
  const Bytes before = device.meter()->current();
  const HeldBackward held(device.device);
  EXPECT_GT(device.meter()->current(), before);
  EXPECT_FALSE(held.has_ended());
  WaitForBackwards(device.device);
  EXPECT_TRUE(held.has_ended());
  EXPECT_EQ(device.meter()->current(), before);
}

}  // namespace
}  // namespace stowage
