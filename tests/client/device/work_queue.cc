#include "tests/client/device/work_queue.h"

#include <utility>

namespace stowage {

struct QueueEvent::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool passed = false;
  std::chrono::steady_clock::time_point time;
};

QueueEvent::QueueEvent() : state_(std::make_shared<State>()) { state_->passed = true; }

bool QueueEvent::passed() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->passed;
}

void QueueEvent::Wait() const {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->passed; });
}

std::chrono::steady_clock::time_point QueueEvent::time() const {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->time;
}

WorkQueue::WorkQueue() : thread_([this] { Run(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
    held_ = false;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkQueue::Add(std::function<void()> work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void WorkQueue::UseClock(Clock clock) {
  const std::lock_guard<std::mutex> lock(mutex_);
  clock_ = std::move(clock);
}

QueueEvent WorkQueue::Record() {
  QueueEvent event;
  event.state_->passed = false;
  Clock clock;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    clock = clock_;
  }
  Add([state = event.state_, clock] {
    {
      const std::lock_guard<std::mutex> lock(state->mutex);
      state->passed = true;
      state->time = clock ? clock() : std::chrono::steady_clock::now();
    }
    state->changed.notify_all();
  });
  return event;
}

void WorkQueue::Block(const QueueEvent& event) {
  Add([event] { event.Wait(); });
}

void WorkQueue::Synchronize() {
  Resume();
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return work_.empty() && !running_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool WorkQueue::idle() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return work_.empty() && !running_;
}

void WorkQueue::Hold() {
  const std::lock_guard<std::mutex> lock(mutex_);
  held_ = true;
}

bool WorkQueue::Resume() {
  bool held = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    held = std::exchange(held_, false);
  }
  changed_.notify_all();
  return held;
}

void WorkQueue::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return (!work_.empty() && !held_) || ends_; });
    if (work_.empty()) return;
    std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    running_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    // Whoever waits for the queue counts on memory that the work held.
    work = nullptr;
    lock.lock();
    running_ = false;
    if (error && !error_) error_ = error;
    changed_.notify_all();
  }
}

}  // namespace stowage
