// --device=test of the command: the device that tests have without a GPU.
#include <cstdlib>
#include <memory>

#include "absl/status/statusor.h"
#include "client/cli/training_device.h"
#include "client/torch/offload/execution_device.h"
#include "tests/client/device/test_device.h"

namespace stowage {
namespace {

absl::StatusOr<std::unique_ptr<ExecutionDevice>> Create() {
  absl::StatusOr<std::unique_ptr<TestDevice>> device = TestDevice::Create();
  if (!device.ok()) return device.status();
  return std::unique_ptr<ExecutionDevice>(*std::move(device));
}

// When the command opens its part with LibTorch. Its thread has nothing left to do when LibTorch ends.
[[maybe_unused]] const bool kAdded = [] {
  TestDevice::Register();
  AddOtherDevice({"test", kTestDevice, &Create});
  std::atexit(&TestDevice::Synchronize);
  return true;
}();

}  // namespace
}  // namespace stowage
