#include "solvers/model/units.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace stowage {
namespace {

static_assert(!std::is_convertible_v<int64_t, Bytes>, "a bare number is no size");
static_assert(!std::is_convertible_v<Bytes, Nanos>, "a size is no time");

TEST(Units, AddAndCompare) {
  EXPECT_EQ(Bytes(2) + Bytes(3) - Bytes(1), Bytes(4));
  EXPECT_LT(Nanos(1), Nanos(2));
  EXPECT_GE(Nanos(2), Nanos(2));
}

TEST(Units, ReadableText) {
  EXPECT_EQ(ToString(Bytes(512)), "512 B");
  EXPECT_EQ(ToString(Bytes(8LL << 30)), "8.00 GiB");
  EXPECT_EQ(ToString(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(ToString(Nanos(999)), "999 ns");
  EXPECT_EQ(ToString(Nanos(1500)), "1.5 us");
  EXPECT_EQ(ToString(Nanos(87500000)), "87.5 ms");
  EXPECT_EQ(ToString(Nanos(1234000000)), "1.234 s");
}

}  // namespace
}  // namespace stowage
