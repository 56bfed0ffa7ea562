// Threads that work through numbered tasks, each of which advances in steps and waits for steps of
// lower-numbered tasks only: hence no deadlock, whatever the number of threads.
#ifndef STOWAGE_SOLVERS_BASE_WORKER_POOL_H_
#define STOWAGE_SOLVERS_BASE_WORKER_POOL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "solvers/base/stop_token.h"

namespace stowage {

class WorkerPool {
 public:
  // Of `threads` threads, as many as Threads() allows, and no more than there are tasks. `stop` may be null and outlives this; `report` hears of the share
  // of the tasks that are dealt, in [0, 1], on the thread that calls Run.
  WorkerPool(int tasks, int threads, const StopToken* stop, std::function<void(double)> report);

  // Threads that are used where so many are asked for, the calling one included.
  static int Threads(int asked);
  // For who has a machine's processors to itself while it solves: one for each, as far as that is of use.
  static int ThreadsThereAre();

  // One thread's view of the pool.
  class Member {
   public:
    // Tasks are dealt in order; -1 when there is none left.
    int NextTask();
    // Until `task` has reported `step`. Not OK when the solve is to stop.
    absl::Status WaitFor(int task, int step);
    // What was written before is seen by whoever waits for it.
    void Report(int task, int step);
    // Polls the stop token every few milliseconds of steps.
    absl::Status Spend(int64_t steps);

   private:
    friend class WorkerPool;
    Member(WorkerPool* pool, bool calling_thread);

    WorkerPool* pool_;
    StopPoll poll_;
    bool calling_thread_;
  };

  // Runs `work` once on every thread and returns the first error by thread. An exception is one, too: RESOURCE_EXHAUSTED
  // where memory cannot be had, else INTERNAL.
  absl::Status Run(const std::function<absl::Status(Member*)>& work);

 private:
  absl::Status RunMember(const std::function<absl::Status(Member*)>& work, bool calling_thread);

  const int tasks_;
  const int threads_;
  const StopToken* const stop_;
  const std::function<void(double)> report_;
  std::atomic<int> next_{0};
  std::atomic<bool> failed_{false};
  std::unique_ptr<std::atomic<int>[]> steps_;  // reported, by task
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_WORKER_POOL_H_
