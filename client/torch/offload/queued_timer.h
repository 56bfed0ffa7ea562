// The clock of compute that runs behind the host, off a queue.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_QUEUED_TIMER_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_QUEUED_TIMER_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

#include "client/torch/offload/stage_timer.h"
#include "solvers/model/units.h"

namespace stowage {

// What a timer needs of a device's compute. Marks count from 0; functions throw what LibTorch throws.
class ComputeQueue {
 public:
  virtual ~ComputeQueue() = default;

  // Puts mark number `mark` into the queue: reached once compute has done what was queued before. A number that is put
  // again means the later place.
  virtual void Mark(size_t mark) = 0;
  // Whether it is reached; waits for nothing.
  virtual bool Passed(size_t mark) = 0;
  // Until it is reached.
  virtual void Wait(size_t mark) = 0;
  // From one mark to the other, which are reached. Waits for nothing.
  virtual Nanos Between(size_t start, size_t stop) = 0;
  // What is queued from now on waits for Open, or until `most` has passed: the host may wait for compute before.
  virtual void Close(Nanos most) = 0;
  // Whether it was still closed.
  virtual bool Open() = 0;
};

// Closes a queue that runs functions of the host: one of them waits at it. Shared with that function, which may run after the
// timer is gone. Thread-safe.
class QueueGate {
 public:
  explicit QueueGate(Nanos most) : most_(most.value()) {}

  // Until it is open, or `most` has passed.
  void Wait();
  // Whether nothing has passed it yet.
  bool Open();

 private:
  const std::chrono::nanoseconds most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool passed_ = false;
};

// Of compute that runs functions of the host, too: a gate is one of them.
class GatedQueue : public ComputeQueue {
 public:
  void Close(Nanos most) final;
  bool Open() final { return gate_->Open(); }

 protected:
  // Puts a call of `function` into the queue, which happens once, on a thread of the device's. Throws what LibTorch throws;
  // there is no call then.
  virtual void Call(void (*function)(void* argument), void* argument) = 0;

 private:
  std::shared_ptr<QueueGate> gate_;
};

// Marks are in the queue, so the host runs ahead as in training; only Collect waits for compute.
std::unique_ptr<StageTimer> MakeQueuedTimer(std::unique_ptr<ComputeQueue> queue);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_QUEUED_TIMER_H_
