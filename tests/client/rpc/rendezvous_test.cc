#include "client/rpc/rendezvous.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

PlanKey KeyOf(const std::string& name) { return PlanKey{kEncodingVersion, Sha256(name)}; }

std::vector<std::string> NumberedAddresses(int count) {
  std::vector<std::string> addresses;
  for (int i = 1; i <= count; ++i) addresses.push_back(absl::StrCat("10.0.0.", i, ":7070"));
  return addresses;
}

std::string FirstOf(const std::vector<std::string>& addresses, const PlanKey& key) {
  return *std::max_element(addresses.begin(), addresses.end(),
                           [&key](const std::string& a, const std::string& b) {
                             return RendezvousScore(key, a) < RendezvousScore(key, b);
                           });
}

// Programs that are older or newer, on any machine, ask the same server.
TEST(RendezvousTest, ScoresAreTheSameInAllProcesses) {
  EXPECT_EQ(RendezvousScore(KeyOf("resnet50"), "10.0.0.1:7070"), 0xf6c8567438df99bf);
  EXPECT_EQ(RendezvousScore(KeyOf("resnet50"), "10.0.0.2:7070"), 0xebaaec915a8137be);
  EXPECT_EQ(RendezvousScore(KeyOf("resnet50"), "[::1]:7070"), 0xae8f9ddcbf3511b7);
  EXPECT_EQ(RendezvousScore(KeyOf("decoder"), "10.0.0.1:7070"), 0x1b5694b232d16875);
  EXPECT_EQ(RendezvousScore(KeyOf("decoder"), "10.0.0.2:7070"), 0x91c20c349382737b);
  EXPECT_EQ(RendezvousScore(KeyOf("decoder"), "[::1]:7070"), 0xb6369366ba856afb);
}

TEST(RendezvousTest, KeysAreSpreadEvenly) {
  const std::vector<std::string> addresses = NumberedAddresses(5);
  std::map<std::string, int> keys;
  for (int i = 0; i < 10000; ++i) ++keys[FirstOf(addresses, KeyOf(absl::StrCat("key ", i)))];
  ASSERT_EQ(keys.size(), 5u);
  for (const auto& [address, count] : keys) EXPECT_NEAR(count, 2000, 80) << address;
}

TEST(RendezvousTest, AServerThatGoesMovesItsOwnKeysAloneAndToAllOthers) {
  const std::vector<std::string> before = NumberedAddresses(5);
  const std::vector<std::string> after = NumberedAddresses(4);
  std::map<std::string, int> moved;
  for (int i = 0; i < 10000; ++i) {
    const PlanKey key = KeyOf(absl::StrCat("key ", i));
    const std::string first = FirstOf(before, key);
    if (first == before.back()) {
      ++moved[FirstOf(after, key)];
    } else {
      EXPECT_EQ(FirstOf(after, key), first);
    }
  }
  ASSERT_EQ(moved.size(), 4u);
  for (const auto& [address, count] : moved) EXPECT_NEAR(count, 500, 80) << address;
}

}  // namespace
}  // namespace stowage
