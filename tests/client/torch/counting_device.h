// A device whose copies are counted.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_COUNTING_DEVICE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_COUNTING_DEVICE_H_

#include <memory>
#include <optional>
#include <vector>

#include "client/torch/offload/simulated_device.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "tests/client/device/training_devices.h"

namespace stowage {

class CountingDevice final : public ExecutionDevice {
 public:
  struct Copies {
    int count = 0;
    Bytes bytes;
  };

  explicit CountingDevice(const TransferModel& link,
                          const TrainingDevice& on = TrainingDeviceNamed("cpu"))
      : device_(MakeLinkedDevice(on, link)) {}

  c10::Device device() const override { return device_->device(); }
  MemoryMeter* meter() override { return device_->meter(); }
  Bytes granularity() const override { return device_->granularity(); }
  bool has_cpu_kernels() const override { return device_->has_cpu_kernels(); }
  std::optional<CudaKernels> cuda_kernels() const override { return device_->cuda_kernels(); }
  std::unique_ptr<StageTimer> MakeTimer() override { return device_->MakeTimer(); }
  Device Hardware() const override { return device_->Hardware(); }
  const TransferModel* link() const override { return device_->link(); }
  HostPool* host() override { return device_->host(); }
  std::unique_ptr<DeviceCopy> StartCopy(Stream direction,
                                        const std::vector<CopyPiece>& pieces) override {
    Copies* const copies = direction == Stream::kToHost ? &offloaded_ : &prefetched_;
    ++copies->count;
    for (const CopyPiece& piece : pieces) {
      copies->bytes += Bytes(static_cast<int64_t>(piece.bytes));
    }
    return device_->StartCopy(direction, pieces);
  }

  // Only of the CPU.
  SimulatedDevice* simulated() { return dynamic_cast<SimulatedDevice*>(device_.get()); }
  const Copies& offloaded() const { return offloaded_; }
  const Copies& prefetched() const { return prefetched_; }
  // Of the copies, and of what the host pool held.
  void Forget() {
    offloaded_ = prefetched_ = {};
    device_->host()->ResetPeak();
  }

 private:
  const std::unique_ptr<ExecutionDevice> device_;
  Copies offloaded_;
  Copies prefetched_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_COUNTING_DEVICE_H_
