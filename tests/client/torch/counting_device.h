// A device whose copies are counted.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_COUNTING_DEVICE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_COUNTING_DEVICE_H_

#include <memory>
#include <vector>

#include "client/torch/offload/simulated_device.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

class CountingDevice final : public ExecutionDevice {
 public:
  struct Copies {
    int count = 0;
    Bytes bytes;
  };

  explicit CountingDevice(const TransferModel& link)
      : device_(SimulatedDevice::Create(link).value()) {}

  c10::Device device() const override { return device_->device(); }
  MemoryMeter* meter() override { return device_->meter(); }
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

  SimulatedDevice* simulated() { return device_.get(); }
  const Copies& offloaded() const { return offloaded_; }
  const Copies& prefetched() const { return prefetched_; }
  // Of the copies, and of what the host pool held.
  void Forget() {
    offloaded_ = prefetched_ = {};
    device_->host()->ResetPeak();
  }

 private:
  std::unique_ptr<SimulatedDevice> device_;
  Copies offloaded_;
  Copies prefetched_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_COUNTING_DEVICE_H_
