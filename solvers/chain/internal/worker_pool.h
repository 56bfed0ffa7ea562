// Threads that work through numbered tasks, each of which advances in steps and waits for steps of
// lower-numbered tasks only: hence no deadlock, whatever the number of threads. Internal to
// solvers/chain.
#ifndef STOWAGE_SOLVERS_CHAIN_INTERNAL_WORKER_POOL_H_
#define STOWAGE_SOLVERS_CHAIN_INTERNAL_WORKER_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "solvers/solver.h"

namespace stowage {

class WorkerPool {
 public:
  WorkerPool(int tasks, const SolveContext& context);

  // Threads that a solve with these options uses, the calling one included.
  static int Threads(const SolveContext& context);

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

  // Runs `work` once on every thread and returns the first error by thread; RESOURCE_EXHAUSTED where
  // memory cannot be had on one. Progress is called on the calling thread.
  absl::Status Run(const std::function<absl::Status(Member*)>& work);

 private:
  absl::Status RunMember(const std::function<absl::Status(Member*)>& work, bool calling_thread);

  const SolveContext context_;
  const int tasks_;
  std::atomic<int> next_{0};
  std::atomic<bool> failed_{false};
  std::unique_ptr<std::atomic<int>[]> steps_;  // reported, by task
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_INTERNAL_WORKER_POOL_H_
