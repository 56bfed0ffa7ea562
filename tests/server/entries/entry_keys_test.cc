#include "server/entries/entry_keys.h"

#include <gtest/gtest.h>

#include <string>

namespace stowage::testing {
namespace {

const std::string kOne(64, 'a');
const std::string kTwo = std::string(32, '0') + std::string(32, 'F');

EntryKeys::Keys KeysOf(const std::string& text) { return EntryKeys::Parse("keys", text).value(); }

TEST(EntryKeys, OpenWhatTheySealUnderTheSameNameAlone) {
  const EntryKeys keys(KeysOf(kOne));
  const std::string sealed = keys.Seal("name", "bytes");
  EXPECT_EQ(keys.Open("name", sealed).value(), "bytes");
  EXPECT_EQ(keys.Open("name", keys.Seal("name", "")).value(), "");
  EXPECT_TRUE(absl::IsDataLoss(keys.Open("other", sealed).status()));
  // What is of the name is not of the bytes.
  EXPECT_TRUE(absl::IsDataLoss(keys.Open("nam", keys.Seal("name", "bytes")).status()));
  for (size_t at = 0; at < sealed.size(); ++at) {
    std::string changed = sealed;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    EXPECT_TRUE(absl::IsDataLoss(keys.Open("name", changed).status())) << at;
    EXPECT_TRUE(absl::IsDataLoss(keys.Open("name", sealed.substr(0, at)).status())) << at;
  }
}

TEST(EntryKeys, RotateBySealingUnderTheFirstAndOpeningUnderAny) {
  EntryKeys keys(KeysOf(kOne));
  const std::string old = keys.Seal("name", "old");
  keys.Set(KeysOf(kOne + "\n" + kTwo));
  EXPECT_EQ(keys.Seal("name", "old"), old);
  keys.Set(KeysOf(kTwo + "\n" + kOne));
  EXPECT_EQ(keys.Open("name", old).value(), "old");
  const std::string young = keys.Seal("name", "new");
  EXPECT_TRUE(absl::IsDataLoss(EntryKeys(KeysOf(kOne)).Open("name", young).status()));
  keys.Set(KeysOf(kTwo));
  EXPECT_EQ(keys.Open("name", young).value(), "new");
  EXPECT_TRUE(absl::IsDataLoss(keys.Open("name", old).status()));
}

TEST(EntryKeys, WithoutKeysBytesAreThemselves) {
  EXPECT_EQ(SealUnder(nullptr, "name", "bytes"), "bytes");
  EXPECT_EQ(OpenUnder(nullptr, "name", "bytes").value(), "bytes");
}

TEST(EntryKeys, LinesThatAreNoKeysAreNamedAndNotShown) {
  EXPECT_EQ(KeysOf("# why\n\n  " + kOne + " # first\r\n" + kTwo).size(), 2u);
  for (const std::string& bad : {std::string("secret"), kOne + "a", kOne + " " + kTwo,
                                 std::string(64, 'g'), kOne.substr(1)}) {
    const absl::Status status = EntryKeys::Parse("keys", "\n" + bad).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status));
    EXPECT_EQ(status.message(), "keys:2: must be 64 hexadecimal digits");
  }
  EXPECT_EQ(EntryKeys::Parse("keys", "# none\n").status().message(), "keys: has no key");
}

}  // namespace
}  // namespace stowage::testing
