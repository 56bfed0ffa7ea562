#include "tests/bench/gap_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(GapRows, NoPlanIsBelowABound) {
  std::vector<GapRow> rows;
  for (const bool as_graph : {false, true}) {
    for (const bool with_link : {false, true}) {
      const absl::StatusOr<GapRow> row = ComputeGapRow("alexnet", as_graph, with_link);
      ASSERT_TRUE(row.ok()) << row.status();
      for (const GapCell& cell : row->cells) {
        EXPECT_GE(cell.fast_bound, 1.0);
        EXPECT_GE(cell.bound, cell.fast_bound);
        EXPECT_GE(cell.plan.value_or(1e9), cell.bound);
      }
      EXPECT_TRUE(row->cells.back().plan.has_value());
      rows.push_back(*row);
    }
  }
  const std::string markdown = GapMarkdown(rows);
  EXPECT_THAT(markdown, HasSubstr("### Chains, no link\n"));
  EXPECT_THAT(markdown, HasSubstr("### Graphs, a link of 24 GB/s: CPU time"));
  EXPECT_THAT(GapMarkdown({rows.front()}), Not(HasSubstr("### Graphs")));
}

TEST(GapRows, RefuseAnUnknownNetwork) {
  EXPECT_FALSE(ComputeGapRow("no such network", false, false).ok());
}

}  // namespace
}  // namespace stowage
