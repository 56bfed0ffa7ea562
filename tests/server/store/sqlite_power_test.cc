// A power cut: what is required is on the disk once it is said to be done.
#include <gtest/gtest.h>

#include "tests/server/store/entries.h"
#include "tests/server/store/power_cut.h"
#include "tests/server/store/sqlite_files.h"

namespace stowage::testing {
namespace {

class SqlitePower : public ::testing::Test {
 protected:
  // Of the entry "a" that a server finds after a power cut now; -1 without one.
  int64_t GenerationAfterACut() {
    const TemporaryFolder after;
    power_.Recover(folder_.path(), after.path());
    const auto store = MustOpen(after / "plans", &metrics_);
    const auto entry = store->Get(KeyOf("a"), Access::kPeek);
    return entry ? entry->generation : -1;
  }

  absl::Status Change(int64_t read, Durability durability) {
    return store_->Replace(KeyOf("a"), read, EntryOf("a", 0, read + 1), durability);
  }

  NoMetrics metrics_;
  PowerCut power_;
  const TemporaryFolder folder_;
  std::unique_ptr<SqlitePlanStore> store_ = MustOpen(folder_ / "plans", &metrics_);
};

TEST_F(SqlitePower, ARequiredChangeIsThereAfterACutAndOthersNeedNotBe) {
  ASSERT_TRUE(Change(0, Durability::kBestEffort).ok());
  EXPECT_EQ(GenerationAfterACut(), -1) << "or this test could not tell";
  ASSERT_TRUE(Change(1, Durability::kRequired).ok());
  EXPECT_EQ(GenerationAfterACut(), 2);
  ASSERT_TRUE(Change(2, Durability::kBestEffort).ok());
  EXPECT_EQ(GenerationAfterACut(), 2) << "the next one is not waited for";
}

TEST_F(SqlitePower, AnErasureIsThereAfterACut) {
  ASSERT_TRUE(Change(0, Durability::kRequired).ok());
  ASSERT_EQ(GenerationAfterACut(), 1);
  ASSERT_TRUE(*store_->Erase(KeyOf("a")));
  EXPECT_EQ(GenerationAfterACut(), -1);
}

}  // namespace
}  // namespace stowage::testing
