#include "solvers/model/budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stowage {
namespace {

int64_t BytesOf(const std::string& text) {
  const absl::StatusOr<Budget> budget = ParseBudget(text);
  EXPECT_TRUE(budget.ok()) << budget.status();
  return std::get<Bytes>(*budget).value();
}

TEST(Budget, ReadsBytes) {
  EXPECT_EQ(BytesOf("1500000000"), 1500000000);
  EXPECT_EQ(BytesOf("9007199254740993"), 9007199254740993);  // no detour over a double
  EXPECT_EQ(BytesOf("8GiB"), 8LL << 30);
  EXPECT_EQ(BytesOf(" 512 MiB "), 512LL << 20);
  EXPECT_EQ(BytesOf("2kb"), 2000);
  EXPECT_EQ(BytesOf("1.5 KiB"), 1536);
  EXPECT_EQ(BytesOf("0"), 0);
}

TEST(Budget, ReadsSharesAndLeast) {
  EXPECT_DOUBLE_EQ(std::get<ShareOfStoreAll>(*ParseBudget("60%")).share, 0.6);
  EXPECT_DOUBLE_EQ(std::get<ShareOfStoreAll>(*ParseBudget("100%")).share, 1.0);
  EXPECT_TRUE(std::holds_alternative<LeastBudget>(*ParseBudget("least")));
}

TEST(Budget, RefusesEverythingElse) {
  for (const char* text : {"", "abc", "-5", "5 parsecs", "0%", "101%", "1e400GiB", "9999999999GiB",
                           "nan%", "%", "GiB", "1..2", "99999999999999999999"}) {
    EXPECT_EQ(ParseBudget(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Budget, Validates) {
  EXPECT_FALSE(ValidateBudget(Bytes(-1)).ok());
  for (const double share : {0.0, -0.5, 1.0001, std::nan(""), HUGE_VAL}) {
    EXPECT_FALSE(ValidateBudget(ShareOfStoreAll{share}).ok()) << share;
  }
  EXPECT_TRUE(ValidateBudget(LeastBudget{}).ok());
}

TEST(Budget, SharesRoundDownAndTheWholeIsExact) {
  EXPECT_EQ(ShareOf({0.5}, Bytes(5)), Bytes(2));
  EXPECT_EQ(ShareOf({1.0}, Bytes((int64_t{1} << 60) + 1)), Bytes((int64_t{1} << 60) + 1));
}

TEST(Budget, ReadableText) {
  EXPECT_EQ(ToString(Budget(ShareOfStoreAll{0.6})), "60%");
  EXPECT_EQ(ToString(Budget(Bytes(1024))), "1.00 KiB");
  EXPECT_EQ(ToString(Budget(LeastBudget{})), "least");
}

}  // namespace
}  // namespace stowage
