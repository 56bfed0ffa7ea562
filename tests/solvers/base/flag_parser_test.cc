#include "solvers/base/flag_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/flags/flag.h"

ABSL_FLAG(int, tries, 3, "how often to try");
ABSL_FLAG(std::string, word, "none", "a word");
ABSL_FLAG(bool, loud, false, "whether to shout");

namespace stowage {
namespace {

using ::testing::HasSubstr;

class FlagParser : public ::testing::Test {
 protected:
  const std::vector<std::string> names_ = {"tries", "word", "loud"};
};

TEST_F(FlagParser, ReadsBothForms) {
  ASSERT_TRUE(ParseFlags({"--tries=7", "--word", "two words"}, names_).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_tries), 7);
  EXPECT_EQ(absl::GetFlag(FLAGS_word), "two words");
  ASSERT_TRUE(ParseFlags({"--word=a=b"}, names_).ok());
  EXPECT_EQ(absl::GetFlag(FLAGS_word), "a=b");
}

TEST_F(FlagParser, ABooleanNeedsNoValue) {
  ASSERT_TRUE(ParseFlags({"--loud", "--tries=7"}, names_).ok());
  EXPECT_TRUE(absl::GetFlag(FLAGS_loud));
  EXPECT_EQ(absl::GetFlag(FLAGS_tries), 7);
  ASSERT_TRUE(ParseFlags({"--loud=false"}, names_).ok());
  EXPECT_FALSE(absl::GetFlag(FLAGS_loud));
  EXPECT_FALSE(ParseFlags({"--loud=perhaps"}, names_).ok());
}

TEST_F(FlagParser, KnowsWhatWasGivenBeItTheDefault) {
  ASSERT_TRUE(ParseFlags({"--tries=3"}, names_).ok());
  EXPECT_TRUE(IsFlagGiven("tries"));
  EXPECT_FALSE(IsFlagGiven("word"));
  ASSERT_TRUE(ParseFlags({"--word=x"}, names_).ok());
  EXPECT_FALSE(IsFlagGiven("tries"));
}

TEST_F(FlagParser, SeesHelp) {
  EXPECT_TRUE(*ParseFlags({"--help"}, names_));
  EXPECT_TRUE(*ParseFlags({"--tries=1", "-h"}, names_));
  EXPECT_FALSE(*ParseFlags({}, names_));
}

TEST_F(FlagParser, RefusesTheRestAndSaysWhat) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--trials=7"}, "unknown argument --trials"},
      {{"tries=7"}, "unknown argument tries=7"},
      {{"--tries"}, "value missing"},
      {{"--tries=many"}, "--tries=many"},
      {{"--flagfile=x"}, "unknown argument"},
  };
  for (const auto& [arguments, why] : cases) {
    const absl::Status status = ParseFlags(arguments, names_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  }
}

TEST_F(FlagParser, HelpListsOnlyTheNamesGiven) {
  const std::string help = FlagHelp({"tries"});
  EXPECT_THAT(help, HasSubstr("--tries=3"));
  EXPECT_THAT(help, HasSubstr("how often to try"));
  EXPECT_THAT(help, ::testing::Not(HasSubstr("word")));
}

}  // namespace
}  // namespace stowage
