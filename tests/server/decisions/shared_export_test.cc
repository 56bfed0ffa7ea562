// All that was decided, as a backup takes it out of servers that share it, and puts it back: nothing is missing where none
// is said to be, and what was taken holds on every server.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/decisions/decision_book.h"
#include "server/decisions/shared_decisions.h"
#include "tests/server/decisions/questions.h"
#include "tests/server/decisions/shared_tier.h"
#include "tests/server/store/entries.h"

namespace stowage::testing {
namespace {

using Keys = std::vector<PlanKey>;

const StopToken kNever;

Keys KeysOf(int count) {
  Keys keys;
  for (int i = 0; i < count; ++i) keys.push_back(KeyOf("decided " + std::to_string(i)));
  std::sort(keys.begin(), keys.end());
  return keys;
}

Decision DeletedAt(int64_t stamp, int64_t generation) {
  return {DecisionKind::kDeletion, Bytes(0), stamp, generation, nullptr};
}

Decision FrozenAt(int64_t stamp, int64_t generation) {
  return {DecisionKind::kFreeze, Bytes(0), stamp, generation, nullptr};
}

class SharedExport : public ::testing::Test {
 protected:
  std::unique_ptr<DecisionBook> Book(std::unique_ptr<SharedDecisions> shared) {
    auto book = DecisionBook::Open(std::make_unique<UnreliableStore>(disk_, &full_),
                                   std::move(shared), &metrics_);
    EXPECT_TRUE(book.ok()) << book.status();
    return *std::move(book);
  }
  void SetUp() override { book_->Upkeep(); }
  // What the servers share, of the key.
  std::vector<Decision> Told(const PlanKey& key) { return shared_.Reach()->Heads(key).value(); }

  NoMetrics metrics_;
  std::atomic<bool> full_{false};
  const std::shared_ptr<MemoryDecisionStore> disk_ = std::make_shared<MemoryDecisionStore>();
  DecisionsInProcess shared_;
  const std::unique_ptr<DecisionBook> book_ = Book(shared_.Reach());
};

TEST_F(SharedExport, PagesHaveEachKeyOnceWhoeverKnowsIt) {
  const Keys keys = KeysOf(9);
  const auto alone = Book(nullptr);
  for (size_t i = 0; i < keys.size(); ++i) {
    // Some are shared alone, some are known here alone (what was shared has lost them), some are both.
    if (i % 3 != 1) {
      ASSERT_TRUE(shared_.Reach()->Tell(keys[i], {DeletedAt(5, 1)}).ok());
    }
    if (i % 3 != 0) {
      ASSERT_TRUE(book_->Take(keys[i], {DeletedAt(5, 1)}).ok());
    }
    if (i % 3 == 1) shared_.Forget(keys[i]);
    ASSERT_TRUE(alone->Take(keys[i], {DeletedAt(5, 1)}).ok());
  }
  for (DecisionBook* const book : {book_.get(), alone.get()}) {
    for (const size_t limit : {size_t{1}, size_t{2}, size_t{4}, size_t{9}, size_t{100}}) {
      Keys all;
      std::optional<PlanKey> after;
      while (true) {
        const auto page = book->Keys(after, limit, kNever);
        ASSERT_TRUE(page.ok()) << page.status();
        ASSERT_LE(page->size(), limit);
        all.insert(all.end(), page->begin(), page->end());
        if (page->size() < limit) break;
        after = page->back();
      }
      EXPECT_EQ(all, keys) << limit;
    }
  }
  shared_.SetOut(true);
  EXPECT_TRUE(absl::IsUnavailable(book_->Keys(std::nullopt, 10, kNever).status()));
}

// What servers share has come back empty: what others know is not there yet.
TEST_F(SharedExport, WhatWasLostIsToldAgainBeforeAnybodyExports) {
  const auto keys = [](DecisionBook* book) { return book->Keys(std::nullopt, 10, kNever); };
  const auto other = Book(shared_.Reach());
  EXPECT_TRUE(absl::IsUnavailable(keys(other.get()).status())) << "it has told nothing yet";
  other->Upkeep();
  ASSERT_TRUE(other->Take(KeyOf("a"), {DeletedAt(5, 1)}).ok());
  EXPECT_EQ(*keys(book_.get()), Keys{KeyOf("a")});
  shared_.Flush();
  EXPECT_TRUE(absl::IsUnavailable(keys(book_.get()).status()));
  other->Upkeep();
  EXPECT_TRUE(absl::IsUnavailable(keys(book_.get()).status())) << "it has not looked itself";
  book_->Upkeep();
  EXPECT_EQ(*keys(book_.get()), Keys{KeyOf("a")});
}

// The mark comes first: while all else is told it says nothing.
TEST_F(SharedExport, NobodyExportsWhileItIsToldAgain) {
  ASSERT_TRUE(book_->Take(KeyOf("a"), {DeletedAt(5, 1)}).ok());
  shared_.Flush();
  absl::Status meanwhile;
  shared_.OnTell([&] { meanwhile = book_->CheckComplete(); });
  book_->Upkeep();
  EXPECT_TRUE(absl::IsUnavailable(meanwhile)) << meanwhile;
  EXPECT_TRUE(book_->CheckComplete().ok());
}

TEST_F(SharedExport, OneThatHasJustBegunWaitsForTheOthers) {
  const auto settling = *DecisionBook::Open(std::make_unique<MemoryDecisionStore>(),
                                            shared_.Reach(), &metrics_, std::chrono::hours(1));
  settling->Upkeep();
  EXPECT_TRUE(absl::IsUnavailable(settling->Keys(std::nullopt, 10, kNever).status()));
  const auto settled = *DecisionBook::Open(std::make_unique<MemoryDecisionStore>(), shared_.Reach(),
                                           &metrics_, std::chrono::milliseconds(1));
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!settled->Keys(std::nullopt, 10, kNever).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST_F(SharedExport, WhatIsGatheredIsAllThereIsAndChangesNothing) {
  const PlanKey key = KeyOf("a");
  ASSERT_TRUE(book_->Take(key, {FrozenAt(7, 3)}).ok());
  ASSERT_TRUE(shared_.Reach()->Tell(key, {FrozenAt(9, 3), DeletedAt(4, 1)}).ok());
  const auto all = book_->Gathered(key);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[0].generation, 1);
  EXPECT_EQ((*all)[1].stamp, 9) << "the later one";
  EXPECT_EQ(book_->Find(key)->all.size(), 1u);
  EXPECT_TRUE(book_->Gathered(KeyOf("b"))->empty());
  EXPECT_EQ(book_->Find(KeyOf("b")), nullptr);
}

TEST_F(SharedExport, WhatCannotBeReadIsNotLeftOut) {
  const PlanKey key = KeyOf("a");
  ASSERT_TRUE(shared_.Reach()->Tell(key, {FrozenAt(9, 3)}).ok());
  shared_.SetDamaged(true);
  EXPECT_TRUE(absl::IsUnavailable(book_->Gathered(key).status()));
  shared_.SetDamaged(false);
  shared_.SetOut(true);
  EXPECT_TRUE(absl::IsUnavailable(book_->Gathered(key).status()));
  shared_.SetOut(false);
  EXPECT_EQ(book_->Gathered(key)->size(), 1u);
}

// What this server has itself is missing in no backup.
TEST_F(SharedExport, WhatCannotBeReadAndIsKnownIsInABackup) {
  const PlanKey key = KeyOf("a");
  ASSERT_TRUE(book_->Take(key, {FrozenAt(9, 3)}).ok());
  shared_.SetDamaged(true);
  EXPECT_EQ(book_->Gathered(key)->size(), 1u);
  ASSERT_TRUE(shared_.Reach()->Tell(key, {FrozenAt(10, 3)}).ok());
  EXPECT_TRUE(absl::IsUnavailable(book_->Gathered(key).status()));
}

// A backup reads: that nothing can be told is no reason to have none.
TEST_F(SharedExport, WhatCannotBeToldIsInABackupAllTheSame) {
  const PlanKey key = KeyOf("a");
  ASSERT_TRUE(book_->Take(key, {FrozenAt(7, 3)}).ok());
  shared_.Forget(key);
  shared_.SetFull(true);
  EXPECT_EQ(*book_->Keys(std::nullopt, 10, kNever), Keys{key});
  EXPECT_EQ(book_->Gathered(key)->size(), 1u);
}

TEST_F(SharedExport, TheLaterOfTwoCountsAndIsWhereTheOthersFindIt) {
  const PlanKey key = KeyOf("a");
  const auto first = book_->Take(key, {FrozenAt(7, 3), DeletedAt(2, 1)});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->size(), 2u);
  EXPECT_EQ(Told(key).size(), 2u);
  EXPECT_TRUE(book_->Take(key, {FrozenAt(7, 3), FrozenAt(6, 3), DeletedAt(2, 1)})->empty());
  // Of one call as well, in any order.
  const std::vector<Decision> rising = {FrozenAt(8, 3), FrozenAt(9, 3)};
  const auto later = book_->Take(key, rising);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->size(), 1u);
  EXPECT_EQ(book_->Find(key)->all.at({DecisionKind::kFreeze, 0}).stamp, 9);
  EXPECT_EQ(book_->Take(KeyOf("b"), {rising.rbegin(), rising.rend()})->size(), 1u);
  EXPECT_EQ(book_->Find(KeyOf("b"))->all.at({DecisionKind::kFreeze, 0}).stamp, 9);
  // What servers share is later than both.
  ASSERT_TRUE(shared_.Reach()->Tell(key, {FrozenAt(20, 3)}).ok());
  EXPECT_TRUE(book_->Take(key, {FrozenAt(15, 3)})->empty());
  EXPECT_EQ(book_->Find(key)->all.at({DecisionKind::kFreeze, 0}).stamp, 20);
  // A deletion ends what it is later than, and what comes again of it.
  EXPECT_EQ(book_->Take(key, {DeletedAt(30, 5)})->size(), 1u);
  EXPECT_TRUE(book_->Take(key, {FrozenAt(99, 5)})->empty());
  EXPECT_EQ(book_->Find(key)->all.size(), 1u);
}

TEST_F(SharedExport, AnImportIsDoneOnceTheOthersWereTold) {
  const PlanKey key = KeyOf("a");
  shared_.SetFull(true);
  EXPECT_TRUE(absl::IsUnavailable(book_->Take(key, {FrozenAt(7, 3)}).status()));
  // Known here by now, and no news: but still not told.
  EXPECT_TRUE(absl::IsUnavailable(book_->Take(key, {FrozenAt(7, 3)}).status()));
  EXPECT_TRUE(absl::IsUnavailable(book_->Take(key, {FrozenAt(6, 3)}).status()));
  shared_.SetFull(false);
  ASSERT_TRUE(book_->Take(key, {FrozenAt(7, 3)}).ok());
  ASSERT_EQ(Told(key).size(), 1u);
  EXPECT_EQ(Told(key)[0].stamp, 7);
}

// A restore mends what it is no older than, and says what it is older than.
TEST_F(SharedExport, WhatCannotBeReadGivesWay) {
  const PlanKey key = KeyOf("a");
  ASSERT_TRUE(shared_.Reach()->Tell(key, {FrozenAt(9, 3)}).ok());
  shared_.SetDamaged(true);
  EXPECT_TRUE(absl::IsUnavailable(book_->Take(key, {FrozenAt(8, 3)}).status()));
  EXPECT_TRUE(book_->Take(key, {FrozenAt(9, 3)}).ok());
  EXPECT_EQ(book_->Take(key, {FrozenAt(10, 3)})->size(), 1u);
  EXPECT_EQ(Told(key)[0].stamp, 10);
}

TEST_F(SharedExport, WhatIsNotOnTheDiskIsNotTaken) {
  const PlanKey key = KeyOf("a");
  full_ = true;
  EXPECT_TRUE(absl::IsUnavailable(book_->Take(key, {FrozenAt(7, 3)}).status()));
  EXPECT_EQ(book_->Find(key), nullptr);
  EXPECT_TRUE(Told(key).empty());
  // Nor is what others have told: it counts here, and is on no disk.
  ASSERT_TRUE(shared_.Reach()->Tell(key, {FrozenAt(9, 3)}).ok());
  EXPECT_TRUE(absl::IsUnavailable(book_->Take(key, {FrozenAt(9, 3)}).status()));
  full_ = false;
  ASSERT_TRUE(book_->Take(key, {FrozenAt(9, 3)}).ok());
  EXPECT_EQ(disk_->Load()->size(), 1u);
}

TEST(RedisDecisionsExport, FindsItsKeysAmongThoseOfOthers) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RedisServer redis;
  CountingMetrics metrics;
  RedisDecisions decisions("stowage", redis.Pool(), &metrics);
  EXPECT_TRUE(absl::IsUnavailable(decisions.Keys(std::nullopt, 5, kNever).status())) << "no mark";
  ASSERT_TRUE(decisions.Mark().ok());
  EXPECT_TRUE(decisions.Keys(std::nullopt, 5, kNever)->empty());
  const Keys keys = KeysOf(2500);
  RedisDecisions others("another", redis.Pool(), &metrics);
  RedisDecisions sealed("stowage", redis.Pool(), &metrics,
                        std::make_shared<EntryKeys>(EntryKeys::Keys{std::string(32, 'k')}));
  ASSERT_TRUE(sealed.Mark().ok());
  ASSERT_TRUE(others.Tell(KeyOf("theirs"), {DeletedAt(5, 1)}).ok());
  ASSERT_TRUE(sealed.Tell(KeyOf("sealed"), {DeletedAt(5, 1)}).ok());
  redis.Ask({"SET", "stowage:decided:v1:key:1:zz", "no digest"});
  redis.Ask({"SET", RedisKeys("stowage").Plan(KeyOf("plan")), "no decision"});
  for (const PlanKey& key : keys) ASSERT_TRUE(decisions.Tell(key, {DeletedAt(5, 1)}).ok());
  EXPECT_EQ(*decisions.Keys(std::nullopt, 5000, kNever), keys);
  EXPECT_EQ(*decisions.Keys(keys[0], 3, kNever), Keys(keys.begin() + 1, keys.begin() + 4));
  EXPECT_TRUE(decisions.Keys(keys.back(), 3, kNever)->empty());
  EXPECT_EQ(*sealed.Keys(std::nullopt, 5, kNever), Keys{KeyOf("sealed")});
  StopToken stopped;
  stopped.RequestStop();
  EXPECT_TRUE(absl::IsCancelled(decisions.Keys(std::nullopt, 5, stopped).status()));
  redis.Ask({"FLUSHALL"});
  EXPECT_TRUE(absl::IsUnavailable(decisions.Keys(std::nullopt, 5, kNever).status())) << "no mark";
  redis.Kill();
  EXPECT_TRUE(absl::IsUnavailable(decisions.Keys(std::nullopt, 5, kNever).status()));
}

TEST(RedisDecisionsExport, ReadsAllOfAKeyOrSaysWhatItCannotRead) {
  if (!RedisServer::IsInstalled()) GTEST_SKIP() << "SKIPPED: no redis-server is installed";
  RedisServer redis;
  CountingMetrics metrics;
  RedisDecisions decisions("stowage", redis.Pool(), &metrics);
  const PlanKey key = KeyOf("a");
  const std::string name = RedisKeys("stowage").Decisions(key);
  EXPECT_TRUE(decisions.ReadAll(key)->read.empty());
  ASSERT_TRUE(decisions.Tell(key, {DeletedAt(5, 1), FrozenAt(6, 3)}).ok());
  const auto all = decisions.ReadAll(key);
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->read.size(), 2u);
  EXPECT_TRUE(all->unreadable.empty());
  const std::string deletion = redis.Ask({"HGET", name, "0:0"}).text;
  const auto after = [&](const RedisCommand& command) {
    redis.Ask({"DEL", name});
    EXPECT_TRUE(decisions.Tell(key, {DeletedAt(5, 1)}).ok());
    redis.Ask(command);
    return decisions.ReadAll(key);
  };
  // A kind that a later version may have, a head that is cut, what is no field of ours, and another type.
  for (const RedisCommand& command : {RedisCommand{"HSET", name, "7:0", deletion},
                                      {"HSET", name, "0:0", deletion.substr(0, 20)},
                                      {"HSET", name, "\x01", "x"},
                                      {"SET", name, "text"}}) {
    const absl::Status status = after(command).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(std::string(status.message()).find(name), std::string::npos) << status;
  }
  // A record of another decision, and one that is cut: of these it is known what they are about.
  for (const RedisCommand& command :
       {RedisCommand{"HSET", name, "1:0", deletion},
        {"HSET", name, "1:0", deletion.substr(0, deletion.size() - 1)}}) {
    const auto some = after(command);
    ASSERT_TRUE(some.ok()) << some.status();
    EXPECT_EQ(some->read.size(), 1u);
    ASSERT_EQ(some->unreadable.size(), 1u);
    EXPECT_EQ(some->unreadable[0].kind, DecisionKind::kFreeze);
    EXPECT_EQ(some->unreadable[0].stamp, 5);
  }
}

}  // namespace
}  // namespace stowage::testing
