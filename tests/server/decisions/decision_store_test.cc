// What every store of decisions must do, and what the one in a file does when things go wrong.
#include "server/decisions/decision_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "server/decisions/decision_transfer.h"
#include "server/entries/entry_codec.h"
#include "server/entries/sealed_bytes.h"
#include "server/store/sqlite_connection.h"
#include "tests/server/store/entries.h"
#include "tests/server/store/power_cut.h"
#include "tests/server/store/sqlite_files.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

const PlanKey kA = KeyOf("a"), kB = KeyOf("b");

Decision Deletion(int64_t stamp, int64_t up_to) {
  return {DecisionKind::kDeletion, Bytes(0), stamp, up_to, nullptr};
}

Decision Freeze(const std::string& name, int64_t stamp, int64_t generation) {
  return {DecisionKind::kFreeze, Bytes(0), stamp, generation, EntryOf(name, 0, generation)};
}

Decision OfBudget(int64_t budget, int64_t stamp, int64_t generation) {
  return {DecisionKind::kBudget, Bytes(budget), stamp, generation, EntryOf("a", 10, generation)};
}

// All that a store has, so that two stores, or times, can be compared.
std::map<std::pair<PlanKey, DecisionId>, std::string> AllIn(DecisionStore* store) {
  std::map<std::pair<PlanKey, DecisionId>, std::string> all;
  const auto loaded = store->Load();
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  if (!loaded.ok()) return all;
  for (const auto& [key, decision] : *loaded) {
    const bool fresh =
        all.emplace(std::make_pair(key, IdOf(decision)), EncodeDecision(key, decision)).second;
    EXPECT_TRUE(fresh) << "two for the same";
  }
  return all;
}

std::unique_ptr<SqliteDecisionStore> MustOpenDecisions(const std::string& path) {
  auto store = SqliteDecisionStore::Open(path);
  EXPECT_TRUE(store.ok()) << store.status();
  return store.ok() ? *std::move(store) : nullptr;
}

// Closed and opened again before each call.
class Reopened final : public DecisionStore {
 public:
  absl::StatusOr<std::vector<KeyedDecision>> Load() override {
    return MustOpenDecisions(folder_ / "decisions")->Load();
  }
  absl::Status Write(const PlanKey& key, const std::vector<Decision>& decisions) override {
    return MustOpenDecisions(folder_ / "decisions")->Write(key, decisions);
  }
  absl::Status DropUpTo(const PlanKey& key, int64_t generation) override {
    return MustOpenDecisions(folder_ / "decisions")->DropUpTo(key, generation);
  }

 private:
  TemporaryFolder folder_;
};

struct DecisionStoreFactory {
  std::string name;
  std::function<std::unique_ptr<DecisionStore>()> make;
};

std::unique_ptr<DecisionStore> InAFile() {
  static auto* const kFolder = new TemporaryFolder;
  static int files = 0;
  return MustOpenDecisions(*kFolder / std::to_string(++files));
}

class DecisionStoreConformance : public ::testing::TestWithParam<DecisionStoreFactory> {
 protected:
  std::unique_ptr<DecisionStore> store_ = GetParam().make();
};

TEST_P(DecisionStoreConformance, BeginsWithNone) { EXPECT_TRUE(AllIn(store_.get()).empty()); }

TEST_P(DecisionStoreConformance, GivesBackWhatWasWrittenWhole) {
  ASSERT_TRUE(store_->Write(kA, {OfBudget(7, 11, 5), Freeze("a", 12, 6)}).ok());
  ASSERT_TRUE(store_->Write(kB, {Deletion(13, 99)}).ok());
  const auto all = AllIn(store_.get());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all.at({kA, {DecisionKind::kBudget, 7}}), EncodeDecision(kA, OfBudget(7, 11, 5)));
  EXPECT_EQ(all.at({kA, {DecisionKind::kFreeze, 0}}), EncodeDecision(kA, Freeze("a", 12, 6)));
  EXPECT_EQ(all.at({kB, {DecisionKind::kDeletion, 0}}), EncodeDecision(kB, Deletion(13, 99)));
}

TEST_P(DecisionStoreConformance, OneForTheSameReplacesTheFormer) {
  ASSERT_TRUE(store_->Write(kA, {OfBudget(7, 11, 5), OfBudget(8, 11, 5)}).ok());
  ASSERT_TRUE(store_->Write(kA, {OfBudget(7, 14, 6)}).ok());
  const auto all = AllIn(store_.get());
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at({kA, {DecisionKind::kBudget, 7}}), EncodeDecision(kA, OfBudget(7, 14, 6)));
  EXPECT_EQ(all.at({kA, {DecisionKind::kBudget, 8}}), EncodeDecision(kA, OfBudget(8, 11, 5)));
}

TEST_P(DecisionStoreConformance, DropsWhatIsOverButNotTheDeletionNorOfOtherKeys) {
  ASSERT_TRUE(store_->Write(kA, {OfBudget(7, 11, 5), OfBudget(8, 12, 9), Deletion(13, 6)}).ok());
  ASSERT_TRUE(store_->Write(kB, {Freeze("b", 11, 5)}).ok());
  ASSERT_TRUE(store_->DropUpTo(kA, 6).ok());
  const auto all = AllIn(store_.get());
  EXPECT_EQ(all.size(), 3u);
  EXPECT_EQ(all.count({kA, {DecisionKind::kBudget, 7}}), 0u);
}

TEST_P(DecisionStoreConformance, KeysOfAnotherEncodingAreOtherKeys) {
  PlanKey other = kA;
  other.encoding_version += 1;
  ASSERT_TRUE(store_->Write(kA, {Deletion(13, 99)}).ok());
  ASSERT_TRUE(store_->Write(other, {Deletion(14, 98)}).ok());
  EXPECT_EQ(AllIn(store_.get()).size(), 2u);
}

// As a newer program wrote it, and an older one finds it that is put back.
TEST(DecisionFile, ADecisionOfANewerVersionIsNamedAndLeftAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "decisions";
  ASSERT_TRUE(MustOpenDecisions(path)->Write(kA, {OfBudget(7, 11, 5)}).ok());
  const std::string body = *Unseal(kDecisionVersion, EncodeDecision(kA, OfBudget(7, 11, 5)));
  const std::string newer = absl::BytesToHexString(Seal(kDecisionVersion + 1, body));
  {
    SqliteConnection other = *SqliteConnection::Open(path, std::chrono::seconds(1));
    ASSERT_TRUE(other.Execute("UPDATE decisions SET record = x'" + newer + "'").ok());
  }
  const auto loaded = MustOpenDecisions(path)->Load();
  ASSERT_TRUE(absl::IsUnimplemented(loaded.status())) << loaded.status();
  EXPECT_THAT(std::string(loaded.status().message()),
              ::testing::AllOf(::testing::HasSubstr(path), ::testing::HasSubstr("format version"),
                               ::testing::HasSubstr(kA.digest.ToHex())));
  EXPECT_TRUE(absl::IsUnimplemented(SqliteDecisionStore::ReadAll(path).status()));
  SqliteConnection same = *SqliteConnection::Open(path, std::chrono::seconds(1));
  EXPECT_EQ(*same.Integer("SELECT count(*) FROM decisions WHERE record = x'" + newer + "'"), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Stores, DecisionStoreConformance,
    ::testing::Values(
        DecisionStoreFactory{"Memory", [] { return std::make_unique<MemoryDecisionStore>(); }},
        DecisionStoreFactory{"Sqlite", InAFile},
        DecisionStoreFactory{"SqliteReopened", [] { return std::make_unique<Reopened>(); }}),
    [](const auto& store) { return store.param.name; });

class SqliteDecisions : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "decisions";
};

TEST_F(SqliteDecisions, OneProcessHasTheFile) {
  const auto store = MustOpenDecisions(path_);
  const auto second = SqliteDecisionStore::Open(path_);
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_NE(second.status().message().find(path_), std::string::npos) << second.status();
}

TEST_F(SqliteDecisions, AFileOfAnotherProgramIsRefusedAndStays) {
  { ASSERT_NE(MustOpen(path_, nullptr), nullptr); }  // of plans
  const auto store = SqliteDecisionStore::Open(path_);
  EXPECT_TRUE(absl::IsFailedPrecondition(store.status())) << store.status();
}

// Nothing else knows what was decided: a server that went on would give deleted plans.
TEST_F(SqliteDecisions, ADamagedFileIsRefusedAndStays) {
  {
    const auto store = MustOpenDecisions(path_);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(store->Write(KeyOf(std::to_string(i)), {Freeze(std::to_string(i), 5, 6)}).ok());
    }
  }
  const std::string whole = ReadFile(path_);
  int refused = 0;
  for (size_t at = 100; at < whole.size(); at += 997) {
    std::string damaged = whole;
    for (size_t i = at; i < std::min(at + 64, whole.size()); ++i) damaged[i] = '\x5a';
    WriteFile(path_, damaged);
    const auto store = SqliteDecisionStore::Open(path_);
    const absl::Status status = store.ok() ? (*store)->Load().status() : store.status();
    if (status.ok()) continue;  // what no page uses
    ++refused;
    EXPECT_TRUE(absl::IsDataLoss(status) || absl::IsUnimplemented(status)) << status;
    EXPECT_NE(status.message().find(path_), std::string::npos) << status;
    EXPECT_EQ(ReadFile(path_), damaged);
  }
  EXPECT_GT(refused, 10);
}

// At every moment of a write: what was said to be written is there, what was not is there or not, and
// the file is whole.
TEST_F(SqliteDecisions, APowerCutAtAnyMomentLosesNothingThatWasSaidToBeWritten) {
  int done = 0, cut = 0;
  for (int64_t after = 0; done < 3; ++after) {
    const TemporaryFolder folder, recovered;
    PowerCut power;
    std::optional<absl::Status> written;
    {
      const auto store = MustOpenDecisions(folder / "decisions");
      ASSERT_TRUE(store->Write(kA, {Deletion(1, 9), OfBudget(7, 11, 12)}).ok());
      power.After(after);
      written = store->Write(kA, {OfBudget(7, 14, 13), OfBudget(8, 14, 13)});
      power.After(0);
      power.Recover(folder.path(), recovered.path());
      EXPECT_TRUE(written->ok() || absl::IsUnavailable(*written)) << *written;
    }
    power.After(INT64_MAX / 2);
    const auto store = MustOpenDecisions(recovered / "decisions");
    const auto all = AllIn(store.get());
    ASSERT_EQ(all.count({kA, {DecisionKind::kDeletion, 0}}), 1u) << after;
    const bool is_new =
        all.at({kA, {DecisionKind::kBudget, 7}}) == EncodeDecision(kA, OfBudget(7, 14, 13));
    const bool is_old =
        all.at({kA, {DecisionKind::kBudget, 7}}) == EncodeDecision(kA, OfBudget(7, 11, 12));
    EXPECT_TRUE(is_new || is_old) << after;
    EXPECT_EQ(all.count({kA, {DecisionKind::kBudget, 8}}), is_new ? 1u : 0u) << "half of a write";
    EXPECT_TRUE(!written->ok() || is_new) << after;
    ++(written->ok() ? done : cut);
  }
  EXPECT_GE(cut, 2);
}

TEST(DecisionTransfer, TakesAllOfAFileToAnotherWhileTheFirstIsOpen) {
  const TemporaryFolder folder;
  const auto first = MustOpenDecisions(folder / "first");
  ASSERT_TRUE(first->Write(kA, {Freeze("a", 5, 3), OfBudget(7, 4, 3), OfBudget(2, 9, 3)}).ok());
  ASSERT_TRUE(first->Write(kB, {Deletion(8, 77)}).ok());
  const auto read = SqliteDecisionStore::ReadAll(folder / "first");
  ASSERT_TRUE(read.ok()) << read.status();
  const std::string text = DecisionsToText(*read);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  const auto parsed = DecisionsFromText(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(DecisionsToText({parsed->rbegin(), parsed->rend()}), text);
  const auto second = MustOpenDecisions(folder / "second");
  const auto import = ImportDecisions(*parsed, second.get());
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->taken, 4);
  EXPECT_EQ(AllIn(second.get()), AllIn(first.get()));
  EXPECT_EQ(ImportDecisions(*parsed, second.get())->known, 4);
  EXPECT_TRUE(absl::IsNotFound(SqliteDecisionStore::ReadAll(folder / "none").status()));
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

TEST(DecisionTransfer, TheLaterStampCountsAndADeletionEndsTheOthers) {
  MemoryDecisionStore store;
  ASSERT_TRUE(store.Write(kA, {Freeze("a", 5, 3), OfBudget(7, 4, 3)}).ok());
  ASSERT_TRUE(store.Write(kB, {Deletion(8, 77)}).ok());
  const std::vector<KeyedDecision> decisions = {{kA, OfBudget(7, 3, 3)},
                                                {kA, OfBudget(7, 6, 4)},
                                                {kB, Freeze("b", 99, 77)},
                                                {kB, Freeze("b", 99, 78)},
                                                {kA, Deletion(10, 3)}};
  const auto import = ImportDecisions(decisions, &store);
  ASSERT_TRUE(import.ok()) << import.status();
  EXPECT_EQ(import->taken, 3);
  EXPECT_EQ(import->known, 2);
  std::set<std::pair<PlanKey, DecisionId>> left;
  for (const auto& [id, record] : AllIn(&store)) left.insert(id);
  const std::set<std::pair<PlanKey, DecisionId>> expected = {{kA, {DecisionKind::kDeletion, 0}},
                                                             {kA, {DecisionKind::kBudget, 7}},
                                                             {kB, {DecisionKind::kDeletion, 0}},
                                                             {kB, {DecisionKind::kFreeze, 0}}};
  EXPECT_EQ(left, expected);
}

TEST(DecisionTransfer, LinesThatAreNoneAreNamed) {
  const std::string good = DecisionsToText({{kA, Deletion(1, 1)}});
  const std::string line = good.substr(good.find('\n') + 1, good.size() - good.find('\n') - 2);
  const std::pair<std::string, std::string> cases[] = {
      {"", "line 1: must be: stowage decisions 1"},
      {"stowage decisions 2\n", "line 1: must be"},
      {good + "word\n", "line 3: must be VERSION DIGEST RECORD"},
      {good + "x" + line + "\n", "line 3: must begin with a version"},
      {good + line + "0\n", "line 3: the record must be pairs"},
      {good + line + "00\n", "line 3: the record cannot be used: "},
      {good + std::to_string(kB.encoding_version) + " " + kB.digest.ToHex() +
           line.substr(line.rfind(' ')) + "\n",
       "line 3: the record cannot be used: "},
  };
  for (const auto& [text, says] : cases) {
    const absl::Status status = DecisionsFromText(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_EQ(std::string(status.message()).rfind(says, 0), 0u) << status;
  }
}

}  // namespace
}  // namespace stowage::testing
