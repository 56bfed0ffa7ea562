#include "solvers/base/worker_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

namespace stowage {
namespace {

void ToNobody(double) {}

TEST(WorkerPool, DealsEveryTaskOnce) {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> dealt(100);
    WorkerPool pool(100, threads, nullptr, ToNobody);
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

// The work of eight tasks of which one throws, on whichever thread: the others, which wait for it, end, too.
template <class Throw>
absl::Status RunWithOneThat(const Throw& throws, int threads, int failing) {
  WorkerPool pool(8, threads, nullptr, ToNobody);
  return pool.Run([&](WorkerPool::Member* member) {
    for (int task = member->NextTask(); task >= 0; task = member->NextTask()) {
      if (task == failing) throws();
      if (task > 0) {
        const absl::Status waited = member->WaitFor(task - 1, 1);
        if (!waited.ok()) return waited;
      }
      member->Report(task, 1);
    }
    return absl::OkStatus();
  });
}

TEST(WorkerPool, ExceptionsAreAnswers) {
  for (const int threads : {1, 2, 4}) {
    for (int failing = 0; failing < 8; ++failing) {
      const absl::Status memory = RunWithOneThat([] { throw std::bad_alloc(); }, threads, failing);
      EXPECT_TRUE(absl::IsResourceExhausted(memory)) << memory;
      const absl::Status length =
          RunWithOneThat([] { throw std::length_error("too long"); }, threads, failing);
      EXPECT_TRUE(absl::IsInternal(length)) << length;
      EXPECT_NE(length.message().find("too long"), std::string::npos) << length;
      const absl::Status number = RunWithOneThat([] { throw 7; }, threads, failing);
      EXPECT_TRUE(absl::IsInternal(number)) << number;
    }
  }
}

TEST(WorkerPool, HearsTheTokenAndReportsOnTheCallingThread) {
  StopToken stop;
  stop.PassDeadlineAtLook(1);
  std::vector<double> shares;
  WorkerPool pool(10, 1, &stop, [&](double share) { shares.push_back(share); });
  const absl::Status status = pool.Run([](WorkerPool::Member* member) {
    absl::Status spent;
    for (int task = member->NextTask(); spent.ok() && task >= 0; task = member->NextTask()) {
      spent = member->Spend(1);
    }
    return spent;
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  ASSERT_FALSE(shares.empty());
  EXPECT_EQ(shares.front(), 0.0);
}

}  // namespace
}  // namespace stowage
