// A CPU whose time passes only when it is told to, and is read only after the fact.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_PROFILE_CLOCKED_DEVICE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_PROFILE_CLOCKED_DEVICE_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/execution_device.h"

namespace stowage {

class ClockedDevice : public ExecutionDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return TrackingAllocator::Get(); }
  std::unique_ptr<StageTimer> MakeTimer() override { return std::make_unique<Timer>(this); }

  virtual void Advance(Nanos time) { now_ += time; }
  Nanos now() const { return now_; }

  // How many times each Collect of a timer gave.
  const std::vector<size_t>& collected() const { return collected_; }

 private:
  class Timer final : public StageTimer {
   public:
    explicit Timer(ClockedDevice* device) : device_(device) {}
    void Start() override { start_ = device_->now_; }
    void Stop() override { times_.push_back(device_->now_ - start_); }
    bool Passed() override { return true; }
    std::vector<Nanos> Collect() override {
      device_->collected_.push_back(times_.size());
      return std::exchange(times_, {});
    }

   private:
    ClockedDevice* device_;
    Nanos start_;
    std::vector<Nanos> times_;
  };

  Nanos now_;
  std::vector<size_t> collected_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_PROFILE_CLOCKED_DEVICE_H_
