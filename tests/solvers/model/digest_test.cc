#include "solvers/model/digest.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

// FIPS 180-4's example.
TEST(Digest, IsSha256) {
  EXPECT_EQ(Sha256("abc").ToHex(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256("").ToHex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256("abc").ToBinary().size(), Digest::kSize);
}

// RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
TEST(Digest, IsHmacUnderAKey) {
  EXPECT_EQ(KeyedSha256(std::string(20, '\x0b'), "Hi There").ToHex(),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(KeyedSha256("Jefe", "what do ya want for nothing?").ToHex(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(KeyedSha256(std::string(131, '\xaa'),
                        "Test Using Larger Than Block-Size Key - Hash Key First")
                .ToHex(),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_TRUE(SameSecretly(Sha256("a"), Sha256("a")));
  EXPECT_FALSE(SameSecretly(Sha256("a"), Sha256("b")));
}

TEST(Digest, StreamsInPieces) {
  Hasher hasher;
  hasher.Update("a", 1);
  hasher.Update("bc", 2);
  EXPECT_EQ(hasher.Finish(), Sha256("abc"));
}

}  // namespace
}  // namespace stowage
