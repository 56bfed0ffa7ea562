// A channel of copies that is as slow as it is told to be: one thread, which carries copies out one
// after the other.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_COPY_CHANNEL_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_COPY_CHANNEL_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "solvers/model/units.h"

namespace stowage {

// Thread-safe. Outlives its jobs.
class CopyChannel {
 private:
  struct Job;

 public:
  class Ticket {
   public:
    Ticket(CopyChannel* channel, std::shared_ptr<Job> job)
        : channel_(channel), job_(std::move(job)) {}
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    // A job that has not begun to copy never will; one that has is waited for.
    ~Ticket() { channel_->GiveUp(job_.get()); }

    // Throws what the job's copy threw.
    void Wait() { channel_->Wait(job_.get()); }

   private:
    CopyChannel* channel_;
    std::shared_ptr<Job> job_;
  };

  CopyChannel();
  // Ends the thread.
  ~CopyChannel();
  CopyChannel(const CopyChannel&) = delete;
  CopyChannel& operator=(const CopyChannel&) = delete;

  // The channel is busy with it for `time`, from the end of the job before it on; at the end it runs
  // `copy`, on its thread.
  std::unique_ptr<Ticket> Start(Nanos time, std::function<void()> copy);

  // Jobs that have been started and have not ended.
  int running() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class State { kWaiting, kCopying, kEnded };
  struct Job {
    std::function<void()> copy;
    Clock::time_point end;
    State state = State::kWaiting;
    bool given_up = false;
    std::exception_ptr error;
  };

  void Run();
  void Carry(Job* job, std::unique_lock<std::mutex>* lock);
  void Wait(Job* job);
  void GiveUp(Job* job);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Job>> jobs_;  // the first is the one the thread is at
  Clock::time_point free_;                 // when the last job ends
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_COPY_CHANNEL_H_
