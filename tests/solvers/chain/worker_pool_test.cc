#include "solvers/chain/internal/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <vector>

namespace stowage {
namespace {

SolveOptions WithThreads(int threads) {
  SolveOptions options;
  options.threads = threads;
  return options;
}

TEST(WorkerPool, DealsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    const SolveOptions options = WithThreads(threads);
    std::vector<std::atomic<int>> dealt(100);
    WorkerPool pool(100, options);
    const absl::Status status = pool.Run([&](WorkerPool::Member* member) {
      for (int task = member->NextTask(); task >= 0; task = member->NextTask()) {
        if (task > 0) {
          const absl::Status waited = member->WaitFor(task - 1, 1);
          if (!waited.ok()) return waited;
        }
        ++dealt[static_cast<size_t>(task)];
        member->Report(task, 1);
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    for (const std::atomic<int>& times : dealt) EXPECT_EQ(times.load(), 1);
  }
}

// On whichever thread: the others, which wait for it, end, too.
TEST(WorkerPool, MemoryThatCannotBeHadIsAnAnswer) {
  for (const int threads : {1, 2, 4}) {
    for (int failing = 0; failing < 8; ++failing) {
      const SolveOptions options = WithThreads(threads);
      WorkerPool pool(8, options);
      const absl::Status status = pool.Run([&](WorkerPool::Member* member) {
        for (int task = member->NextTask(); task >= 0; task = member->NextTask()) {
          if (task == failing) throw std::bad_alloc();
          if (task > 0) {
            const absl::Status waited = member->WaitFor(task - 1, 1);
            if (!waited.ok()) return waited;
          }
          member->Report(task, 1);
        }
        return absl::OkStatus();
      });
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    }
  }
}

}  // namespace
}  // namespace stowage
