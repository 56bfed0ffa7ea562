// What a file of tokens may say, and that no error repeats it.
#include "server/auth/token_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPlain[] = "plain-token-of-the-planner";
constexpr char kHashedToken[] = "the-token-behind-the-hash";

std::string HashedLine() { return "sha256:" + Sha256(kHashedToken).ToHex(); }

TEST(TokenTable, KnowsPlainAndHashedTokens) {
  const std::string text = std::string("# tokens\n\n") + kPlain + " vision planner nightly\r\n" +
                           HashedLine() + "\t-\tadmin\n";
  const auto table = TokenTable::Parse("tokens", text);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 2u);
  const Caller* planner = table->Find(kPlain);
  ASSERT_NE(planner, nullptr);
  EXPECT_EQ(planner->identity, "nightly");
  EXPECT_EQ(planner->tenant, "vision");
  EXPECT_EQ(planner->role, Role::kPlanner);
  EXPECT_EQ(planner->scope(), TenantScope("vision"));
  const Caller* admin = table->Find(kHashedToken);
  ASSERT_NE(admin, nullptr);
  EXPECT_EQ(admin->identity, "token of line 4");
  EXPECT_EQ(admin->tenant, "");
  EXPECT_EQ(admin->scope(), std::nullopt);
}

TEST(TokenTable, NothingElseIsAToken) {
  const auto table = TokenTable::Parse(
      "tokens", std::string(kPlain) + " t reader\n" + HashedLine() + " t reader\n");
  ASSERT_TRUE(table.ok());
  const std::string plain = kPlain;
  for (const std::string& guess : {std::string(), plain.substr(1), plain + " ", plain + "x",
                                   std::string("Plain") + plain.substr(5), HashedLine(),
                                   Sha256(kHashedToken).ToHex(), std::string(70000, 'x')}) {
    EXPECT_EQ(table->Find(guess), nullptr) << guess.substr(0, 80);
  }
}

TEST(TokenTable, MistakesNameFileAndLineAndNeverTheText) {
  const std::string secret = "hunter2hunter2hunter2";
  struct Case {
    std::string text;
    const char* says;
  };
  const Case cases[] = {
      {"", "tokens: has no token"},
      {"# " + secret + "\n", "tokens: has no token"},
      {"\n" + secret + "\n", "tokens:2: must be CREDENTIAL TENANT ROLE [NAME]"},
      {secret + " t planner n " + secret + "\n", "tokens:1: must be CREDENTIAL"},
      {secret + " t " + secret + "\n",
       "tokens:1: the role must be reader, planner, tenant_admin or admin"},
      {"t planner/" + secret + " reader\n", "tokens:1: the tenant must be"},
      {secret + " " + std::string(65, 't') + " reader\n", "tokens:1: the tenant must be"},
      {secret + " t reader " + secret + "!\n", "tokens:1: the name must be"},
      {"hunter2 t reader\n", "tokens:1: the token must have 16 to 1024"},
      {"sha256:" + secret + " t reader\n", "tokens:1: the token must have 16 to 1024"},
      {"sha256:" + std::string(63, 'a') + "g t reader\n", "tokens:1: the token must have"},
      {secret + "\x01 t reader\n", "tokens:1: the token must have 16 to 1024"},
      {secret + " a reader\n" + secret + " b admin\n", "tokens:2: the token comes twice"},
      {secret + " a reader\nsha256:" + Sha256(secret).ToHex() + " b admin\n",
       "tokens:2: the token comes twice"},
  };
  for (const Case& c : cases) {
    const absl::Status status = TokenTable::Parse("tokens", c.text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.text;
    EXPECT_THAT(status.ToString(), HasSubstr(c.says)) << c.text;
    EXPECT_THAT(status.ToString(), Not(HasSubstr("hunter2")));
  }
}

}  // namespace
}  // namespace stowage
