// kill -9 at any moment: the store opens, what was acknowledged is there, nothing is wrong.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <random>
#include <string>
#include <thread>

#include "server/entries/entry_codec.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

constexpr int kRounds = 100;
constexpr int kNames = 12;

// Shared with the child.
struct Shared {
  std::array<std::atomic<int64_t>, kNames> acknowledged{};  // generation of the last Put, by name
  std::atomic<int> puts{0};
};

std::shared_ptr<const PlanEntry> EntryNamed(int name, int64_t generation) {
  return EntryOf(std::to_string(name), static_cast<size_t>((name + 7 * generation) % 9000),
                 generation);
}

// Never returns.
void WorkUntilKilled(const std::string& path, uint64_t seed, Shared* shared) {
  static NoMetrics metrics;
  auto store = SqlitePlanStore::Open(OptionsFor(path), &metrics);
  if (!store.ok()) ::_exit(1);
  const auto work = [&](uint64_t thread) {
    std::mt19937_64 rng(2 * seed + thread);
    for (;;) {
      // Each thread has names of its own.
      const int name = static_cast<int>(2 * (rng() % (kNames / 2)) + thread);
      std::atomic<int64_t>& last = shared->acknowledged[static_cast<size_t>(name)];
      const auto entry = (*store)->Get(KeyOf(std::to_string(name)), Access::kLookup);
      const int64_t generation = (entry ? entry->generation : last.load()) + 1;
      if ((*store)->Put(KeyOf(std::to_string(name)), EntryNamed(name, generation)).ok()) {
        last = generation;
        ++shared->puts;
      }
    }
  };
  std::thread other(work, 1);
  work(0);
}

TEST(SqliteKill, NothingAcknowledgedIsLostAndNothingIsWrong) {
  TemporaryFolder folder;
  const std::string path = folder / "plans";
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* shared = new (memory) Shared();
  CountingMetrics metrics;
  std::mt19937_64 rng(11);
  for (int round = 0; round < kRounds; ++round) {
    const int puts = shared->puts;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WorkUntilKilled(path, rng(), shared);
    // Every other time while it works, else at any moment.
    for (int ms = 0; round % 2 == 0 && shared->puts == puts && ms < 10000; ++ms) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + rng() % 29000));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not open the store";

    const auto store = MustOpen(path, &metrics);
    ASSERT_NE(store, nullptr);
    for (int name = 0; name < kNames; ++name) {
      std::atomic<int64_t>& last = shared->acknowledged[static_cast<size_t>(name)];
      const auto entry = store->Get(KeyOf(std::to_string(name)), Access::kPeek);
      if (entry == nullptr) {
        ASSERT_EQ(last, 0) << "lost " << name;
        continue;
      }
      // Killed between the commit and its acknowledgement: one more.
      ASSERT_GE(entry->generation, last);
      ASSERT_LE(entry->generation, last + 1);
      ASSERT_EQ(EncodeEntry(*entry), EncodeEntry(*EntryNamed(name, entry->generation)));
      last = entry->generation;
    }
  }
  for (const auto& count : metrics.cache_failures) EXPECT_EQ(count, 0);
  EXPECT_GE(shared->puts, kRounds / 2);
  RecordProperty("puts", shared->puts);
}

}  // namespace
}  // namespace stowage::testing
