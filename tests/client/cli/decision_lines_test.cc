#include "client/cli/decision_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/files.h"
#include "client/rpc/mock_plan_connection.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::NiceMock;
using ::testing::Not;
using ::testing::Return;

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr size_t kFraming = 6;  // that a line is counted with

// A line of so many bytes.
std::string LineOf(const std::string& key, size_t bytes) {
  std::string line = absl::StrCat("1 ", Sha256(key).ToHex(), " ");
  line.resize(bytes, 'a');
  return line;
}

absl::StatusOr<DecisionFile> DecisionFileOf(const std::string& text) {
  const TemporaryFolder folder;
  EXPECT_TRUE(WriteFile(folder / "decisions", text).ok());
  return ReadDecisionFile(folder / "decisions");
}

TEST(DecisionFile, HasLinesWithTheirNumbers) {
  const auto file = DecisionFileOf("stowage decisions 1\r\n\n1 aa 0b\n  \n\n1 bb 0c \r\n1 cc 0d");
  ASSERT_TRUE(file.ok()) << file.status();
  std::vector<std::pair<int, std::string>> lines;
  for (const DecisionLine& line : file->lines) lines.emplace_back(line.number, line.text);
  EXPECT_THAT(lines, ElementsAre(std::make_pair(3, "1 aa 0b"), std::make_pair(6, "1 bb 0c"),
                                 std::make_pair(7, "1 cc 0d")));
  EXPECT_THAT(DecisionFileOf("stowage decisions 1")->lines, IsEmpty());
}

TEST(DecisionFile, IsKnownByItsFirstLine) {
  for (const char* text : {"", "1 aa 0b\n", "\nstowage decisions 1\n", "stowage decisions 2\n",
                           "stowage decisions 10\n"}) {
    const auto file = DecisionFileOf(text);
    EXPECT_TRUE(absl::IsInvalidArgument(file.status())) << text;
    EXPECT_THAT(std::string(file.status().message()),
                HasSubstr("/decisions: line 1: must be: stowage decisions 1"));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ReadDecisionFile("/nonexistent/x").status()));
}

TEST(DecisionFile, IsWrittenAsItIsRead) {
  EXPECT_EQ(DecisionFileText({}), "stowage decisions 1\n");
  EXPECT_EQ(DecisionFileText({"1 aa 0b", "1 bb 0c"}), "stowage decisions 1\n1 aa 0b\n1 bb 0c\n");
}

TEST(DecisionFile, KeysAreCountedOnce) {
  EXPECT_EQ(CountKeys({}), 0u);
  EXPECT_EQ(CountKeys({"1 aa 0b", "1 aa 0c", "1 bb 0b", "2 aa 0b"}), 3u);
}

TEST(ExportAll, TurnsPagesAlsoEmptyOnes) {
  NiceMock<MockPlanConnection> connection;
  EXPECT_CALL(connection, ExportDecisions("", 1000, _))
      .WillOnce(Return(ExportedDecisions{{"1 aa 0b", "1 aa 0c"}, "second"}));
  EXPECT_CALL(connection, ExportDecisions("second", 1000, _))
      .WillOnce(Return(ExportedDecisions{{}, "third"}));
  EXPECT_CALL(connection, ExportDecisions("third", 1000, _))
      .WillOnce(Return(ExportedDecisions{{"1 bb 0b"}, ""}));
  const auto decisions = ExportAll(&connection, {});
  ASSERT_TRUE(decisions.ok()) << decisions.status();
  EXPECT_THAT(*decisions, ElementsAre("1 aa 0b", "1 aa 0c", "1 bb 0b"));
}

TEST(ExportAll, AFailedPageIsTheError) {
  NiceMock<MockPlanConnection> connection;
  EXPECT_CALL(connection, ExportDecisions)
      .WillOnce(Return(ExportedDecisions{{"1 aa 0b"}, "second"}))
      .WillOnce(Return(absl::UnavailableError("a store is away")));
  EXPECT_EQ(ExportAll(&connection, {}).status(), absl::UnavailableError("a store is away"));
}

// A server whose pages lead back would be read for ever.
TEST(ExportAll, PagesThatLeadInACircleEnd) {
  NiceMock<MockPlanConnection> connection;
  int pages = 0;
  ON_CALL(connection, ExportDecisions).WillByDefault([&](auto&&...) {
    return ExportedDecisions{{}, ++pages % 2 == 0 ? "even" : "odd"};
  });
  EXPECT_TRUE(absl::IsInternal(ExportAll(&connection, {}).status()));
  EXPECT_EQ(pages, 3);
}

class ImportLinesTest : public ::testing::Test {
 protected:
  ImportLinesTest() {
    ON_CALL(connection_, name).WillByDefault(Return("stowaged at X"));
    ON_CALL(connection_, GetCapabilities).WillByDefault([this](auto&&...) {
      Capabilities capabilities;
      capabilities.max_message = Bytes(max_message_bytes_);
      return capabilities;
    });
    ON_CALL(connection_, ImportDecisions)
        .WillByDefault([this](const std::vector<std::string>& decisions,
                              const CallOptions&) -> absl::StatusOr<ImportedDecisions> {
          if (sent_.size() == fails_at_) return error_;
          sent_.push_back(decisions);
          return ImportedDecisions{static_cast<int32_t>(decisions.size()) - 1, 1};
        });
  }

  // Of lines 2, 4, 6, ...
  absl::StatusOr<ImportedDecisions> Import(const std::vector<std::string>& lines) {
    DecisionFile file{"a/file", {}};
    for (const std::string& line : lines) {
      file.lines.push_back({static_cast<int>(2 * file.lines.size() + 2), line});
    }
    return ImportLines(file, &connection_, {});
  }
  std::string Refused(const std::vector<std::string>& lines) {
    return std::string(Import(lines).status().message());
  }
  std::vector<size_t> Batches() const {
    std::vector<size_t> sizes;
    for (const auto& batch : sent_) sizes.push_back(batch.size());
    return sizes;
  }

  int64_t max_message_bytes_ = int64_t{16} << 20;
  size_t fails_at_ = 99;  // this batch
  absl::Status error_ = absl::UnavailableError("away");
  std::vector<std::vector<std::string>> sent_;
  NiceMock<MockPlanConnection> connection_;
};

TEST_F(ImportLinesTest, SendsAMebibyteAtATimeInOrder) {
  const size_t third = kMebibyte / 3 - kFraming;
  std::vector<std::string> lines;
  for (int i = 0; i < 7; ++i) lines.push_back(LineOf(absl::StrCat(i), third));
  const auto imported = Import(lines);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Batches(), ElementsAre(3, 3, 1));
  EXPECT_EQ(imported->taken, 4);
  EXPECT_EQ(imported->known, 3);
  std::vector<std::string> all;
  for (const auto& batch : sent_) all.insert(all.end(), batch.begin(), batch.end());
  EXPECT_EQ(all, lines);
}

TEST_F(ImportLinesTest, ABatchIsFullToTheByte) {
  const std::string half = LineOf("a", kMebibyte / 2 - kFraming);
  ASSERT_TRUE(Import({half, half}).ok());
  EXPECT_THAT(Batches(), ElementsAre(2));
  sent_.clear();
  ASSERT_TRUE(Import({half, half + "a"}).ok());
  EXPECT_THAT(Batches(), ElementsAre(1, 1));
}

TEST_F(ImportLinesTest, ALongerLineGoesAlone) {
  const std::string little = LineOf("a", 100);
  ASSERT_TRUE(Import({little, LineOf("b", 2 * kMebibyte), little, little}).ok());
  EXPECT_THAT(Batches(), ElementsAre(1, 1, 2));
}

TEST_F(ImportLinesTest, AServerOfSmallMessagesGetsSmallBatches) {
  max_message_bytes_ = 1024;
  const std::string quarter = LineOf("a", 256 - kFraming);
  ASSERT_TRUE(Import({quarter, quarter, quarter, quarter, quarter}).ok());
  EXPECT_THAT(Batches(), ElementsAre(4, 1));
}

TEST_F(ImportLinesTest, WhatNoMessageHoldsIsRefusedBeforeAnythingIsSent) {
  max_message_bytes_ = 1024;
  ASSERT_TRUE(Import({LineOf("a", 1024 - kFraming)}).ok());
  sent_.clear();
  const auto refused = Import({LineOf("a", 100), LineOf("b", 1025 - kFraming)});
  EXPECT_TRUE(absl::IsInvalidArgument(refused.status())) << refused.status();
  const std::vector<std::string> parts = {"a/file: line 4, key " + Sha256("b").ToHex(),
                                          "1025 bytes", "1024", "stowaged at X",
                                          "--max_message_bytes"};
  for (const std::string& part : parts) {
    EXPECT_THAT(std::string(refused.status().message()), HasSubstr(part));
  }
  EXPECT_THAT(sent_, IsEmpty());
}

TEST_F(ImportLinesTest, NothingIsSentOfAFileWithoutLines) {
  EXPECT_CALL(connection_, ImportDecisions).Times(0);
  const auto imported = Import({});
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->taken + imported->known, 0);
}

TEST_F(ImportLinesTest, AServerThatDoesNotSayItsLimitIsNotSentAnything) {
  EXPECT_CALL(connection_, GetCapabilities).WillOnce(Return(absl::UnavailableError("away")));
  EXPECT_CALL(connection_, ImportDecisions).Times(0);
  EXPECT_EQ(Import({LineOf("a", 100)}).status(), absl::UnavailableError("away"));
}

TEST_F(ImportLinesTest, ARefusedDecisionIsToldByItsLine) {
  fails_at_ = 0;
  error_ = FieldError("decisions[1]", "1 bb 0c", "must be sealed");
  const std::vector<std::string> lines(3, LineOf("a", 500));
  EXPECT_EQ(Refused(lines), "a/file: line 4 = 1 bb 0c: must be sealed");
  EXPECT_TRUE(absl::IsInvalidArgument(Import(lines).status()));
  error_ = FieldError("decisions[2].record", std::string(5000, 'x'), "must be sealed");
  EXPECT_EQ(Refused(lines),
            absl::StrCat("a/file: line 6 = ", std::string(80, 'x'), "...: must be sealed"));
  // Of no line that was sent.
  for (const char* field : {"decisions[3]", "decisions[-1]", "decisions[x]", "decisions", "key"}) {
    error_ = FieldError(field, "v", "must be good");
    EXPECT_EQ(Refused(lines), absl::StrCat(field, " = v: must be good"));
  }
  error_ = absl::InvalidArgumentError("decisions[1]");
  EXPECT_EQ(Refused(lines), "decisions[1]");
}

// Lines are counted through all batches.
TEST_F(ImportLinesTest, AFailureInTheMiddleSaysWhatTheServerHas) {
  max_message_bytes_ = 1024;
  const std::vector<std::string> lines(5, LineOf("a", 500));  // two to a batch
  fails_at_ = 2;
  const absl::Status away = Import(lines).status();
  EXPECT_TRUE(absl::IsUnavailable(away)) << away;
  EXPECT_EQ(away.message(),
            "away; the server has the decisions of the 4 lines before (2 taken, 2 known): the "
            "import may be repeated");
  sent_.clear();
  fails_at_ = 1;
  error_ = FieldError("decisions[1]", "v", "must be good");
  EXPECT_THAT(Refused(lines), HasSubstr("a/file: line 8 = v: must be good; the server has the "
                                        "decisions of the 2 lines before (1 taken, 1 known)"));
  sent_.clear();
  fails_at_ = 0;
  EXPECT_THAT(Refused(lines), Not(HasSubstr("before")));
}

}  // namespace
}  // namespace stowage
