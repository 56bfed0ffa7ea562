#include "client/torch/offload/device_use.h"

#include <gtest/gtest.h>

#include <thread>

namespace stowage {
namespace {

TEST(DeviceUse, OthersAreSeenWhetherTheyWereThereOrCame) {
  const c10::Device gpu(c10::DeviceType::CUDA, 1);
  const DeviceUse own(gpu);
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
}

}  // namespace
}  // namespace stowage
