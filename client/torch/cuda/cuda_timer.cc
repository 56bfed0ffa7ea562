#include "client/torch/cuda/cuda_timer.h"

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>
#include <cstddef>
#include <utility>

namespace stowage {
namespace {

class TimedEvent {
 public:
  TimedEvent() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  TimedEvent(TimedEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  TimedEvent& operator=(TimedEvent&&) = delete;
  ~TimedEvent() {
    if (event_ != nullptr) C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_));
  }

  void Record(cudaStream_t stream) { C10_CUDA_CHECK(cudaEventRecord(event_, stream)); }
  void Synchronize() const { C10_CUDA_CHECK(cudaEventSynchronize(event_)); }
  // Both have been reached.
  Nanos Since(const TimedEvent& start) const {
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start.event_, event_));
    return Nanos(std::llround(static_cast<double>(milliseconds) * 1e6));
  }

 private:
  cudaEvent_t event_ = nullptr;
};

struct Interval {
  TimedEvent start, stop;
};

class CudaTimer final : public StageTimer {
 public:
  explicit CudaTimer(c10::Device device) : device_(device) {}
  ~CudaTimer() override {
    const c10::DeviceGuard guard(device_);
    intervals_.clear();
  }

  void Start() override {
    const c10::DeviceGuard guard(device_);
    // Events are made once; a pass as long as the one before it makes none.
    if (ended_ == intervals_.size()) intervals_.emplace_back();
    intervals_[ended_].start.Record(Compute());
  }

  void Stop() override {
    const c10::DeviceGuard guard(device_);
    intervals_[ended_].stop.Record(Compute());
    ++ended_;
  }

  std::vector<Nanos> Collect() override {
    const c10::DeviceGuard guard(device_);
    std::vector<Nanos> times;
    for (size_t i = 0; i < ended_; ++i) {
      const Interval& interval = intervals_[i];
      // The caller may have changed the stream in between.
      interval.stop.Synchronize();
      times.push_back(interval.stop.Since(interval.start));
    }
    ended_ = 0;
    return times;
  }

 private:
  cudaStream_t Compute() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  const c10::Device device_;
  std::vector<Interval> intervals_;
  size_t ended_ = 0;
};

}  // namespace

std::unique_ptr<StageTimer> MakeCudaTimer(c10::Device device) {
  return std::make_unique<CudaTimer>(device);
}

}  // namespace stowage
