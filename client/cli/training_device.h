// Where a command trains.
#ifndef STOWAGE_CLIENT_CLI_TRAINING_DEVICE_H_
#define STOWAGE_CLIENT_CLI_TRAINING_DEVICE_H_

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/transfer_model.h"

namespace stowage {

// A device beside cpu and cuda, of a program that has one: tests train on one without a GPU.
struct OtherDevice {
  // What --device calls it.
  std::string name;
  c10::Device device;
  std::function<absl::StatusOr<std::unique_ptr<ExecutionDevice>>()> create;
};

// Before flags are read; not thread-safe.
void AddOtherDevice(OtherDevice device);

// --device as LibTorch names it, an index with "cuda". INVALID_ARGUMENT: anything but cpu, cuda, cuda:n or an added
// name; a GPU that is not there, or of which this build's LibTorch knows nothing.
absl::StatusOr<c10::Device> DeviceFromFlag();

// --link, "GB/s[:latency]": the same both ways at once, to more host memory than is needed. Nothing if it is
// empty, INVALID_ARGUMENT for anything else.
absl::StatusOr<std::optional<TransferModel>> LinkFromFlag();

// What steps run on there. On the CPU a simulated device where there is a link, else null, after the allocator
// was installed; elsewhere nothing is copied, and INVALID_ARGUMENT for a link. Errors: those of
// SimulatedDevice, CudaDevice and OtherDevice::create.
absl::StatusOr<std::unique_ptr<ExecutionDevice>> ExecutionDeviceOn(
    c10::Device device, const std::optional<TransferModel>& link);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRAINING_DEVICE_H_
