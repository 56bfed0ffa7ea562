// Files that are damaged, full or read-only: nothing wrong is served, nothing stops, all is counted.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "server/entries/entry_codec.h"
#include "server/entries/sealed_bytes.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

namespace fs = std::filesystem;

class SqliteDamage : public ::testing::Test {
 protected:
  std::unique_ptr<SqlitePlanStore> Opened() { return MustOpen(path_, &metrics_); }

  void Fill(int entries) {
    const auto store = Opened();
    for (int i = 0; i < entries; ++i) {
      ASSERT_TRUE(store->Put(KeyOf(std::to_string(i)), EntryOf(std::to_string(i), 2000)).ok());
    }
  }

  int64_t Failures(CacheFailure failure) const {
    return metrics_.cache_failures[static_cast<size_t>(failure)];
  }

  // Puts, gets and lists: what comes back is what was put.
  static void ExpectWorks(PlanStore* store) {
    ASSERT_TRUE(store->Put(KeyOf("new"), EntryOf("new")).ok());
    ASSERT_NE(store->Get(KeyOf("new"), Access::kLookup), nullptr);
    EXPECT_FALSE(store->List(std::nullopt, 1000).value().empty());
    EXPECT_TRUE(*store->Erase(KeyOf("new")));
  }

  // Every entry that is there is whole.
  static int CountWhole(PlanStore* store, int entries) {
    int whole = 0;
    for (int i = 0; i < entries; ++i) {
      const std::string name = std::to_string(i);
      const auto entry = store->Get(KeyOf(name), Access::kLookup);
      if (entry == nullptr) continue;
      EXPECT_EQ(EncodeEntry(*entry), EncodeEntry(*EntryOf(name, 2000)));
      ++whole;
    }
    return whole;
  }

  // `change` runs on the closed database.
  void Change(const std::string& change) {
    SqliteConnection connection = *SqliteConnection::Open(path_, std::chrono::seconds(1));
    const absl::Status status = connection.Execute(change);
    ASSERT_TRUE(status.ok()) << status;
  }

  // All but the header and what says how large it is.
  void DamageAllButTheFirstPage() {
    const size_t size = ReadFile(path_).size();
    const std::string damage(size - 4096, '\x5a');
    const int file = ::open(path_.c_str(), O_WRONLY);
    EXPECT_EQ(::pwrite(file, damage.data(), damage.size(), 4096),
              static_cast<ssize_t>(damage.size()));
    ::close(file);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_ / "plans";
  CountingMetrics metrics_;
};

TEST_F(SqliteDamage, GarbageIsMovedAsideAndANewFileBegun) {
  std::mt19937_64 rng(1);
  for (const size_t size : {size_t{100}, size_t{600}, size_t{5000}, size_t{100000}}) {
    std::string garbage(size, '\0');
    for (char& byte : garbage) byte = static_cast<char>(rng());
    WriteFile(path_, garbage);
    const int64_t before = Failures(CacheFailure::kCorrupt);
    ExpectWorks(Opened().get());
    EXPECT_EQ(Failures(CacheFailure::kCorrupt), before + 1);
    fs::remove(path_);
  }
  for (int number = 1; number <= 4; ++number) {
    EXPECT_TRUE(fs::exists(path_ + ".corrupt-" + std::to_string(number)));
  }
}

TEST_F(SqliteDamage, TheLastFileMovedAsideIsReplaced) {
  for (int i = 0; i < 6; ++i) {
    WriteFile(path_, "garbage" + std::to_string(i));
    ASSERT_NE(Opened(), nullptr);
  }
  EXPECT_EQ(ReadFile(path_ + ".corrupt-1"), "garbage0");
  EXPECT_EQ(ReadFile(path_ + ".corrupt-4"), "garbage5");
  EXPECT_FALSE(fs::exists(path_ + ".corrupt-5"));
}

TEST_F(SqliteDamage, AnEmptyFileIsANewOne) {
  WriteFile(path_, "");
  ExpectWorks(Opened().get());
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 0);
}

TEST_F(SqliteDamage, AFileCutAnywhereServesNothingWrong) {
  Fill(20);
  const std::string whole = ReadFile(path_);
  ASSERT_GT(whole.size(), 40000u);
  for (size_t size = 1; size < whole.size(); size += 1 + whole.size() / 23) {
    WriteFile(path_, whole.substr(0, size));
    const auto store = Opened();
    CountWhole(store.get(), 20);
    ExpectWorks(store.get());
  }
  EXPECT_GT(Failures(CacheFailure::kCorrupt), 0);
}

TEST_F(SqliteDamage, BytesChangedAnywhereServeNothingWrong) {
  Fill(20);
  const std::string whole = ReadFile(path_);
  std::mt19937_64 rng(7);
  int served = 0;
  for (int round = 0; round < 60; ++round) {
    std::string changed = whole;
    for (int i = 0; i <= round % 5; ++i) changed[rng() % changed.size()] = static_cast<char>(rng());
    WriteFile(path_, changed);
    const auto store = SqlitePlanStore::Open(OptionsFor(path_), &metrics_);
    // A schema version may have become another.
    if (!store.ok()) {
      EXPECT_TRUE(absl::IsFailedPrecondition(store.status())) << store.status();
      continue;
    }
    served += CountWhole(store->get(), 20);
    ExpectWorks(store->get());
    EXPECT_GE((*store)->stats().entries, 0);
  }
  EXPECT_GT(served, 60);
  EXPECT_GT(Failures(CacheFailure::kCorrupt), 0);
}

TEST_F(SqliteDamage, AllButTheFirstPageDamagedIsMovedAside) {
  Fill(50);
  DamageAllButTheFirstPage();
  ExpectWorks(Opened().get());
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 1);
  EXPECT_TRUE(fs::exists(path_ + ".corrupt-1"));
}

TEST_F(SqliteDamage, DamageFoundWhileRunningBeginsANewFile) {
  Fill(50);
  const auto store = Opened();
  DamageAllButTheFirstPage();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&store] { CountWhole(store.get(), 50); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(Failures(CacheFailure::kCorrupt), 0);
  ExpectWorks(store.get());
  EXPECT_TRUE(fs::exists(path_ + ".corrupt-1"));
  EXPECT_EQ(store->stats().entries, 0);
}

TEST_F(SqliteDamage, WithoutAFileItCannotSayUntilOneCanBeBegun) {
  Fill(50);
  const auto store = Opened();
  DamageAllButTheFirstPage();
  // Nothing can be renamed to a folder.
  for (int number = 1; number <= 4; ++number) {
    fs::create_directory(path_ + ".corrupt-" + std::to_string(number));
  }
  EXPECT_EQ(CountWhole(store.get(), 50), 0);
  EXPECT_EQ(store->Look(KeyOf("1"), Access::kLookup).absence, Absence::kFailed);
  EXPECT_GT(Failures(CacheFailure::kUnavailable), 0);
  EXPECT_TRUE(absl::IsUnavailable(store->Put(KeyOf("a"), EntryOf("a"))));
  EXPECT_TRUE(absl::IsUnavailable(store->Erase(KeyOf("a")).status()));
  EXPECT_TRUE(absl::IsUnavailable(store->List(std::nullopt, 10).status()));
  fs::remove(path_ + ".corrupt-1");
  ExpectWorks(store.get());
  EXPECT_EQ(store->Look(KeyOf("1"), Access::kLookup).absence, Absence::kUnknown);
}

TEST_F(SqliteDamage, GarbageInTheJournalServesNothingWrong) {
  std::mt19937_64 rng(3);
  for (const double share : {0.0, 0.9}) {
    fs::remove(path_);
    const std::string copy = folder_ / "copy";
    {
      const auto store = Opened();
      for (int i = 0; i < 20; ++i) {
        ASSERT_TRUE(store->Put(KeyOf(std::to_string(i)), EntryOf(std::to_string(i), 2000)).ok());
      }
      // As it lies on the disk when the process is killed now.
      fs::copy_file(path_, copy, fs::copy_options::overwrite_existing);
      fs::copy_file(path_ + "-wal", copy + "-wal", fs::copy_options::overwrite_existing);
    }
    std::string journal = ReadFile(copy + "-wal");
    ASSERT_GT(journal.size(), 20000u);
    for (size_t i = static_cast<size_t>(share * static_cast<double>(journal.size()));
         i < journal.size(); ++i) {
      journal[i] = static_cast<char>(rng());
    }
    WriteFile(copy + "-wal", journal);
    const auto store = MustOpen(copy, &metrics_);
    ASSERT_NE(store, nullptr);
    const int whole = CountWhole(store.get(), 20);
    EXPECT_LT(whole, 20);
    EXPECT_EQ(whole > 0, share > 0.5) << share;
    ExpectWorks(store.get());
  }
}

TEST_F(SqliteDamage, ADamagedEntryIsDroppedAndTheOthersStay) {
  Fill(3);
  Change("UPDATE entries SET entry = substr(entry, 1, length(entry) - 1) WHERE id = 2");
  const auto store = Opened();
  EXPECT_EQ(CountWhole(store.get(), 3), 2);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 1);
  EXPECT_EQ(store->stats().entries, 2);
  EXPECT_EQ(CountWhole(store.get(), 3), 2);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 1);
  EXPECT_TRUE(store->Put(KeyOf("1"), EntryOf("1", 2000, 1)).ok());
  EXPECT_EQ(CountWhole(store.get(), 3), 3);
}

TEST_F(SqliteDamage, AnEntryUnderAnotherKeyIsDropped) {
  Fill(2);
  Change("UPDATE entries SET entry = (SELECT entry FROM entries WHERE id = 1) WHERE id = 2");
  const auto store = Opened();
  EXPECT_EQ(CountWhole(store.get(), 2), 1);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 1);
}

TEST_F(SqliteDamage, AGenerationThatIsNotTheEntrysIsDropped) {
  Fill(1);
  Change("UPDATE entries SET generation = 1000");
  const auto store = Opened();
  EXPECT_EQ(CountWhole(store.get(), 1), 0);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 1);
  EXPECT_TRUE(store->Put(KeyOf("0"), EntryOf("0", 2000, 1)).ok());
}

TEST_F(SqliteDamage, AnEntryOfAnotherVersionIsForeignAndDropped) {
  Fill(1);
  Change("UPDATE entries SET entry = x'53545745ff000000' || substr(entry, 9)");
  const auto store = Opened();
  EXPECT_EQ(CountWhole(store.get(), 1), 0);
  EXPECT_EQ(Failures(CacheFailure::kForeign), 1);
  EXPECT_EQ(Failures(CacheFailure::kCorrupt), 0);
  EXPECT_EQ(store->stats().entries, 0);
}

constexpr int kCannotTell = 77;  // skips the test
// Runs `work` in a process of its own, which may then be limited.
void InChild(const std::function<void()>& work) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    work();
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kCannotTell) GTEST_SKIP() << "not possible here";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(SqliteDamage, WhatCannotGrowRefusesPutsAndServesOn) {
  Fill(5);
  InChild([this] {
    ::signal(SIGXFSZ, SIG_IGN);
    const auto store = Opened();
    const rlim_t size = 100000;
    const rlimit limit{size, size};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    absl::Status put;
    for (int i = 0; i < 100 && put.ok(); ++i) {
      put =
          store->Put(KeyOf("more" + std::to_string(i)), EntryOf("more" + std::to_string(i), 5000));
    }
    EXPECT_TRUE(absl::IsUnavailable(put)) << put;
    EXPECT_GT(Failures(CacheFailure::kNotWritten), 0);
    EXPECT_EQ(CountWhole(store.get(), 5), 5);
  });
  const auto store = Opened();
  EXPECT_EQ(CountWhole(store.get(), 5), 5);
  ExpectWorks(store.get());
}

// A disk of a megabyte that only this process sees, and that goes with it.
bool MountSmallDisk(const std::string& folder) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("none", folder.c_str(), "tmpfs", 0, "size=1m") == 0;
}

TEST_F(SqliteDamage, AFullDiskRefusesPutsAndServesOn) {
  const std::string disk = folder_ / "disk";
  fs::create_directory(disk);
  if (::geteuid() != 0) GTEST_SKIP() << "may not mount a small disk";
  InChild([this, &disk] {
    if (!MountSmallDisk(disk)) ::_exit(kCannotTell);
    const auto store = MustOpen(disk + "/plans", &metrics_);
    absl::Status put;
    int kept = 0;
    for (; kept < 1000; ++kept) {
      put = store->Put(KeyOf(std::to_string(kept)), EntryOf(std::to_string(kept), 2000));
      if (!put.ok()) break;
    }
    EXPECT_GT(kept, 10);
    EXPECT_TRUE(absl::IsUnavailable(put)) << put;
    EXPECT_EQ(Failures(CacheFailure::kNotWritten), 1);
    EXPECT_EQ(CountWhole(store.get(), kept), kept);
    EXPECT_EQ(store->stats().entries, kept);
  });
}

TEST_F(SqliteDamage, AReadOnlyFileRefusesPutsAndServesOn) {
  Fill(5);
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);
  fs::permissions(fs::path(path_).parent_path(), fs::perms::all);
  fs::permissions(path_ + ".lock", fs::perms::all);
  InChild([this] {
    if (::geteuid() == 0) {
      ASSERT_EQ(::setuid(65534), 0);  // to whom permissions apply
    }
    const auto store = Opened();
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(CountWhole(store.get(), 5), 5);
    EXPECT_TRUE(absl::IsUnavailable(store->Put(KeyOf("b"), EntryOf("b"))));
    EXPECT_TRUE(absl::IsUnavailable(store->Erase(KeyOf("1")).status()));
    EXPECT_EQ(Failures(CacheFailure::kNotWritten), 2);
    EXPECT_EQ(CountWhole(store.get(), 5), 5);
  });
}

}  // namespace
}  // namespace stowage::testing
