// A GPU for machines without one: device memory is what the TrackingAllocator counts, within its limit
// (SetLimit), copies run on threads, as slow as the link is said to be.
//
// Host copies live in memory that the allocator does not count. Thread-safety as ExecutionDevice.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_SIMULATED_DEVICE_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_SIMULATED_DEVICE_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/offload/copy_channel.h"
#include "client/torch/offload/execution_device.h"

namespace stowage {

class SimulatedDevice final : public ExecutionDevice {
 public:
  // INVALID_ARGUMENT as ValidateTransferModel has it; FAILED_PRECONDITION: the allocator is not
  // installed; RESOURCE_EXHAUSTED: no host memory.
  static absl::StatusOr<std::unique_ptr<SimulatedDevice>> Create(const TransferModel& link);

  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return meter_; }
  const TransferModel* link() const override { return &link_; }
  HostPool* host() override { return &host_; }
  std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                        const std::vector<CopyPiece>& pieces) override;

  // The copy that is started after `copies` more fails.
  void FailCopyAfter(int copies) { copies_until_failure_ = copies; }
  // Copies that have been started and have not ended.
  int running() const;

 private:
  SimulatedDevice(const TransferModel& link, MemoryMeter* meter);

  const TransferModel link_;
  MemoryMeter* const meter_;
  HostPool host_;
  int copies_until_failure_ = -1;
  // Both directions where the link is half duplex, else to the host.
  CopyChannel channel_;
  std::unique_ptr<CopyChannel> to_device_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_SIMULATED_DEVICE_H_
