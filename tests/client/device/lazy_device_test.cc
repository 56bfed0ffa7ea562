// The test device before it is initialised, which is once in a process: a program of its own.
#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include "client/torch/base/torch_version.h"
#include "tests/client/device/test_device.h"

namespace stowage {
namespace {

TEST(LazyDevice, CreateInitialisesADeviceThatNobodyHasUsed) {
#if !STOWAGE_LAZY_INIT_BY_DEVICE
  GTEST_SKIP() << "this LibTorch initialises no device that is not its own";
#endif
  TestDevice::Register();
  c10::Allocator* const allocator = c10::GetAllocator(kTestDeviceType);
  EXPECT_THROW(allocator->allocate(1), c10::Error);
  const auto device = TestDevice::Create();
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_NE(allocator->allocate(1).get(), nullptr);
}

}  // namespace
}  // namespace stowage
