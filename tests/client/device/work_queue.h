// A stream of the test device: what is queued runs later, in order, on a thread of the queue's own.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_WORK_QUEUE_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_WORK_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace stowage {

// A place in a queue, which passes once.
class QueueEvent {
 public:
  // Of no queue: has passed.
  QueueEvent();

  bool passed() const;
  void Wait() const;
  // When it passed, which it has, by the queue's clock.
  std::chrono::steady_clock::time_point time() const;

 private:
  friend class WorkQueue;
  struct State;

  std::shared_ptr<State> state_;
};

// Thread-safe. Work that throws ends nothing: Synchronize of the queue throws the first error since the last call.
class WorkQueue {
 public:
  WorkQueue();
  // Runs what is queued.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void Add(std::function<void()> work);
  QueueEvent Record();
  // What is added later runs after the event has passed.
  void Block(const QueueEvent& event);

  // Asked on the queue's thread where an event passes; null: the steady clock, as at the beginning.
  using Clock = std::function<std::chrono::steady_clock::time_point()>;
  void UseClock(Clock clock);

  // Waits until all that was added has run.
  void Synchronize();
  bool idle() const;

  // What is added stays in the queue until Resume: a device that is as late as it may be.
  void Hold();
  // Whether it was held.
  bool Resume();

 private:
  void Run();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  Clock clock_;
  std::exception_ptr error_;
  bool running_ = false;
  bool held_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_WORK_QUEUE_H_
