#include "client/torch/cuda/cuda_timer.h"

#include <c10/core/DeviceGuard.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>
#include <cstddef>
#include <deque>

#include "client/torch/offload/queued_timer.h"

namespace stowage {
namespace {

class TimedEvent {
 public:
  TimedEvent() { C10_CUDA_CHECK(cudaEventCreate(&event_)); }
  TimedEvent(const TimedEvent&) = delete;
  TimedEvent& operator=(const TimedEvent&) = delete;
  ~TimedEvent() { C10_CUDA_IGNORE_ERROR(cudaEventDestroy(event_)); }

  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

void WaitAtGate(void* gate) {
  const std::unique_ptr<std::shared_ptr<QueueGate>> owned(
      static_cast<std::shared_ptr<QueueGate>*>(gate));
  (*owned)->Wait();
}

// The current stream of the calling thread. A gate is a function of the host in it: nothing to be compiled for a GPU.
class CudaQueue final : public ComputeQueue {
 public:
  explicit CudaQueue(c10::Device device) : device_(device) {}
  ~CudaQueue() override {
    const c10::DeviceGuard guard(device_);
    events_.clear();
  }

  void Mark(size_t mark) override {
    const c10::DeviceGuard guard(device_);
    while (mark >= events_.size()) events_.emplace_back();
    C10_CUDA_CHECK(cudaEventRecord(events_[mark].get(), Compute()));
  }

  Nanos Between(size_t start, size_t stop) override {
    const c10::DeviceGuard guard(device_);
    // The caller may have changed the stream in between.
    C10_CUDA_CHECK(cudaEventSynchronize(events_[stop].get()));
    float milliseconds = 0;
    C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, events_[start].get(), events_[stop].get()));
    return Nanos(std::llround(static_cast<double>(milliseconds) * 1e6));
  }

  void Close(Nanos most) override {
    const c10::DeviceGuard guard(device_);
    gate_ = std::make_shared<QueueGate>(most);
    auto owned = std::make_unique<std::shared_ptr<QueueGate>>(gate_);
    C10_CUDA_CHECK(cudaLaunchHostFunc(Compute(), &WaitAtGate, owned.get()));
    static_cast<void>(owned.release());
  }
  bool Open() override { return gate_->Open(); }

 private:
  cudaStream_t Compute() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  const c10::Device device_;
  std::deque<TimedEvent> events_;
  std::shared_ptr<QueueGate> gate_;
};

}  // namespace

std::unique_ptr<StageTimer> MakeCudaTimer(c10::Device device) {
  return MakeQueuedTimer(std::make_unique<CudaQueue>(device));
}

}  // namespace stowage
