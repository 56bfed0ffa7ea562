#include "solvers/base/worker_pool.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "solvers/base/without_exceptions.h"

namespace stowage {
namespace {

constexpr int kMaxThreads = 64;
// More shorten few solves.
constexpr unsigned kMostOfUse = 8;
constexpr int kSpinsBeforeYield = 256;

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

WorkerPool::WorkerPool(int tasks, int threads, const StopToken* stop,
                       std::function<void(double)> report)
    : tasks_(tasks),
      threads_(std::min(Threads(threads), std::max(tasks, 1))),
      stop_(stop),
      report_(std::move(report)),
      steps_(new std::atomic<int>[static_cast<size_t>(tasks)]) {
  for (int task = 0; task < tasks; ++task)
    steps_[static_cast<size_t>(task)].store(0, std::memory_order_relaxed);
}

int WorkerPool::ThreadsThereAre() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, kMostOfUse));
}

int WorkerPool::Threads(int asked) { return std::clamp(asked, 1, kMaxThreads); }

WorkerPool::Member::Member(WorkerPool* pool, bool calling_thread)
    : pool_(pool), poll_(pool->stop_), calling_thread_(calling_thread) {}

int WorkerPool::Member::NextTask() {
  const int task = pool_->next_.fetch_add(1, std::memory_order_relaxed);
  if (calling_thread_) {
    pool_->report_(static_cast<double>(std::min(task, pool_->tasks_)) / pool_->tasks_);
  }
  return task < pool_->tasks_ ? task : -1;
}

absl::Status WorkerPool::Member::WaitFor(int task, int step) {
  const std::atomic<int>& steps = pool_->steps_[static_cast<size_t>(task)];
  for (int spins = 0; steps.load(std::memory_order_acquire) < step; ++spins) {
    if (pool_->failed_.load(std::memory_order_relaxed))
      return absl::CancelledError("another thread of the solve stopped");
    if (spins < kSpinsBeforeYield) {
      Pause();
    } else {
      std::this_thread::yield();
    }
    absl::Status status = Spend(kSpinsBeforeYield);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void WorkerPool::Member::Report(int task, int step) {
  pool_->steps_[static_cast<size_t>(task)].store(step, std::memory_order_release);
}

absl::Status WorkerPool::Member::Spend(int64_t steps) { return poll_.Spend(steps); }

absl::Status WorkerPool::RunMember(const std::function<absl::Status(Member*)>& work,
                                   bool calling_thread) {
  Member member(this, calling_thread);
  // An exception would end the process, from a thread of its own or past threads that run.
  absl::Status status = WithoutExceptions([&] { return work(&member); });
  if (!status.ok()) failed_.store(true, std::memory_order_relaxed);
  return status;
}

absl::Status WorkerPool::Run(const std::function<absl::Status(Member*)>& work) {
  const size_t others = static_cast<size_t>(threads_) - 1;
  std::vector<absl::Status> statuses(others);
  std::vector<std::thread> threads;
  threads.reserve(others);  // nothing may throw between the first thread and its join
  for (size_t i = 0; i < others; ++i) {
    try {
      threads.emplace_back([this, &work, &statuses, i] { statuses[i] = RunMember(work, false); });
    } catch (const std::exception&) {  // no thread, or no memory for it
      break;                           // fewer threads, the same result
    }
  }
  const absl::Status own = RunMember(work, true);
  for (std::thread& thread : threads) thread.join();
  statuses.insert(statuses.begin(), own);
  // The one that stopped first says why; the others only say that it did.
  for (const absl::Status& status : statuses) {
    if (!status.ok() && !absl::IsCancelled(status)) return status;
  }
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  report_(1.0);
  return absl::OkStatus();
}

}  // namespace stowage
