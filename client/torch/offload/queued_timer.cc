#include "client/torch/offload/queued_timer.h"

#include <utility>
#include <vector>

namespace stowage {
namespace {

// Longer than the host takes to queue the work of a stage.
constexpr Nanos kLongestClosed(20000000);
// The first pass takes workspaces and page-locked memory, which may make the host wait; what waits in two, always does.
constexpr int kMostWaits = 2;

class QueuedTimer final : public StageTimer {
 public:
  explicit QueuedTimer(std::unique_ptr<ComputeQueue> queue) : queue_(std::move(queue)) {}

  void Start() override {
    Forget();
    queue_->Mark(2 * ended_);
  }

  void StartQueued() override {
    Forget();
    if (place_ == waits_.size()) waits_.push_back(0);
    closed_ = waits_[place_] < kMostWaits;
    if (closed_) queue_->Close(kLongestClosed);
    queued_ = true;
    queue_->Mark(2 * ended_);
  }

  void Stop() override {
    queue_->Mark(2 * ended_ + 1);
    ++ended_;
    if (closed_) waits_[place_] = queue_->Open() ? 0 : waits_[place_] + 1;
    if (queued_) ++place_;
    closed_ = queued_ = false;
  }

  bool Passed() override {
    for (size_t i = 0; i < ended_; ++i) {
      if (!queue_->Passed(2 * i + 1)) return false;
    }
    return true;
  }

  std::vector<Nanos> Collect() override {
    Forget();
    std::vector<Nanos> times;
    for (size_t i = 0; i < ended_; ++i) {
      if (!queue_->Passed(2 * i + 1)) queue_->Wait(2 * i + 1);
    }
    for (size_t i = 0; i < ended_; ++i) times.push_back(queue_->Between(2 * i, 2 * i + 1));
    ended_ = place_ = 0;
    return times;
  }

 private:
  // A start that has no stop.
  void Forget() {
    if (closed_) queue_->Open();
    closed_ = queued_ = false;
  }

  const std::unique_ptr<ComputeQueue> queue_;
  size_t ended_ = 0;
  size_t place_ = 0;        // of the queued interval, since the last Collect
  std::vector<int> waits_;  // by place: passes in a row in which the host waited for compute
  bool closed_ = false;
  bool queued_ = false;
};

void WaitAtGate(void* gate) {
  const std::unique_ptr<std::shared_ptr<QueueGate>> owned(
      static_cast<std::shared_ptr<QueueGate>*>(gate));
  (*owned)->Wait();
}

}  // namespace

void GatedQueue::Close(Nanos most) {
  gate_ = std::make_shared<QueueGate>(most);
  auto owned = std::make_unique<std::shared_ptr<QueueGate>>(gate_);
  Call(&WaitAtGate, owned.get());
  static_cast<void>(owned.release());
}

void QueueGate::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, most_, [this] { return open_; });
  passed_ = true;
}

bool QueueGate::Open() {
  const std::lock_guard<std::mutex> lock(mutex_);
  open_ = true;
  changed_.notify_all();
  return !passed_;
}

std::unique_ptr<StageTimer> MakeQueuedTimer(std::unique_ptr<ComputeQueue> queue) {
  return std::make_unique<QueuedTimer>(std::move(queue));
}

}  // namespace stowage
