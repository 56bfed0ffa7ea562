#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/bench/graph_budget_rows.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

TEST(GraphBudgets, NoWayIsBelowTheBoundNorOrderSearchBehindAnother) {
  const BudgetRow row = *ComputeBudgetRow(*MakeBudgetNetwork("alexnet"));
  for (size_t i = 0; i < std::size(kBudgetShares); ++i) {
    const double inf = 1e9, search = row.search.slowdowns[i].value_or(inf);
    EXPECT_GE(search, row.bounds[i]);
    EXPECT_LE(search, row.chain.slowdowns[i].value_or(inf));
    EXPECT_LE(search, row.checkpoints.slowdowns[i].value_or(inf));
  }
  EXPECT_LE(row.search.least_peak, std::min(row.chain.least_peak, row.checkpoints.least_peak));
  EXPECT_LE(row.peak_lower_bound, row.search.least_peak);
  const std::string csv = BudgetCsv({row});
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 6);
  EXPECT_THAT(csv, HasSubstr("\nalexnet,1024,"));
  EXPECT_THAT(BudgetMarkdown({row}), HasSubstr("| alexnet (1024) |"));
}

TEST(GraphBudgets, MakeEveryNetwork) {
  for (const std::string& name : BudgetNetworks()) {
    EXPECT_TRUE(MakeBudgetNetwork(name).ok()) << name;
  }
  EXPECT_FALSE(MakeBudgetNetwork("no such network").ok());
}

}  // namespace
}  // namespace stowage
