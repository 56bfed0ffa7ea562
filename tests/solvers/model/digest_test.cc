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

TEST(Digest, StreamsInPieces) {
  Hasher hasher;
  hasher.Update("a", 1);
  hasher.Update("bc", 2);
  EXPECT_EQ(hasher.Finish(), Sha256("abc"));
}

}  // namespace
}  // namespace stowage
