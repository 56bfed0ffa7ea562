#include "client/torch/offload/execution_device.h"

#include <stdexcept>

#include "client/torch/memory/tracking_allocator.h"

namespace stowage {
namespace {

class CpuWithoutLink final : public ExecutionDevice {
 public:
  explicit CpuWithoutLink(MemoryMeter* meter) : meter_(meter) {}

  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return meter_; }

 private:
  MemoryMeter* meter_;
};

}  // namespace

Device CpuHardware() {
  Device device;
  device.model = "cpu";
  device.allocation_granularity = Bytes(1);
  return device;
}

absl::Status ExecutionDevice::SetLink(const TransferModel& /*link*/) {
  return absl::FailedPreconditionError("the link of this device is fixed");
}

std::unique_ptr<DeviceCopy> ExecutionDevice::StartCopy(Stream /*direction*/,
                                                       const std::vector<CopyPiece>& /*pieces*/) {
  throw std::logic_error("a copy on a device without a link");
}

absl::StatusOr<ExecutionDevice*> DeviceOrInstalled(ExecutionDevice* device) {
  if (device != nullptr) return device;
  absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(nullptr);
  if (!meter.ok()) return meter.status();
  static auto* const installed = new CpuWithoutLink(*meter);
  return installed;
}

}  // namespace stowage
