#include "tests/bench/transfer_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "tests/bench/parallel.h"
#include "tests/bench/svg_plot.h"
#include "tests/bench/transfer_savings.h"
#include "tests/bench/transfer_ways.h"

namespace stowage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kBandwidth = 12200000000;
const Configuration kSmall = {"decoder_12", 0, 2};

TransferCurves SmallCurves() {
  return ComputeTransferCurves(kSmall, HalfDuplexLink(kBandwidth), 5).value();
}

size_t IndexOf(const std::vector<std::string>& names, const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

TEST(TransferCurvesTest, NoWayIsBelowItsBound) {
  const TransferCurves curves = SmallCurves();
  ASSERT_EQ(curves.points.size(), 5u);
  ASSERT_EQ(curves.ways.front(), kChainWay);
  for (const TransferPoint& point : curves.points) {
    EXPECT_GE(point.bound, curves.ideal);
    for (size_t way = 0; way < curves.ways.size(); ++way) {
      if (!point.makespans[way]) continue;
      EXPECT_GE(*point.makespans[way], point.bound) << curves.ways[way];
      const bool recomputes = curves.ways[way] == kChainWay || curves.ways[way] == kJointWay;
      EXPECT_TRUE(recomputes || *point.makespans[way] >= point.offload_bound) << curves.ways[way];
    }
  }
}

TEST(TransferCurvesTest, EndAtStoreAll) {
  const TransferCurves curves = SmallCurves();
  const TransferPoint& last = curves.points.back();
  EXPECT_EQ(last.memory, curves.store_all_peak);
  for (const std::optional<Nanos>& makespan : last.makespans) EXPECT_EQ(makespan, curves.ideal);
  // DynProg finds a schedule wherever there is one, hence at the least memory, too.
  const size_t dynprog = IndexOf(curves.ways, kDynProgWay);
  EXPECT_GT(curves.points.front().makespans[dynprog], curves.ideal);
}

TEST(TransferCurvesTest, Reports) {
  const TransferCurves curves = SmallCurves();
  const std::string csv = TransferCsv({curves});
  EXPECT_THAT(csv, StartsWith("network,image,batch,way,memory_bytes,"));
  EXPECT_THAT(csv, HasSubstr("\ndecoder_12,0,2,offload_dynprog,"));
  EXPECT_THAT(TransferSummary({curves}), HasSubstr("| way | decoder | all |"));
  EXPECT_THAT(TransferSummary({curves}), HasSubstr("\n| offload_greedy | "));
  EXPECT_THAT(TransferSvg(curves), HasSubstr("relative makespan"));
  EXPECT_FALSE(ComputeTransferCurves({"none", 64, 1}, HalfDuplexLink(1), 2).ok());
}

TEST(TransferWaysTest, KnowDecodersOfAnyDepth) {
  EXPECT_EQ(ModelledChain({"decoder_3", 0, 1})->length(),
            ModelledChain({"decoder_2", 0, 1})->length() + 1);
  EXPECT_FALSE(ModelledChain({"decoder_0", 0, 1}).ok());
  EXPECT_FALSE(ModelledChain({"decoder_", 0, 1}).ok());
}

TEST(TransferSavingsTest, FasterLinksSaveMore) {
  const SavingsRow row = ComputeSavings(kSmall).value();
  const size_t chain = IndexOf(row.ways, kChainWay), dynprog = IndexOf(row.ways, kDynProgWay);
  ASSERT_LT(std::max(chain, dynprog), row.ways.size());
  EXPECT_EQ(row.least.front()[chain], row.least.back()[chain]);
  EXPECT_LT(row.least.back()[dynprog], row.least.front()[dynprog]);
  // It keeps to the limit, and there is little less memory in which it would.
  const Chain network = ModelledChain(kSmall).value();
  const Frontier recompute = RecomputeFrontier(network).value();
  const double limit = kSavingsLimit * static_cast<double>(network.ideal_time().value());
  const int64_t least = row.least.front()[chain]->value();
  EXPECT_LE(static_cast<double>(recompute.At(Bytes(least))->makespan.value()), limit);
  const Frontier::Point* below = recompute.At(Bytes(least / 100 * 98));
  EXPECT_TRUE(below == nullptr || static_cast<double>(below->makespan.value()) > limit);
  EXPECT_THAT(SavingsCsv({row}), HasSubstr("\ndecoder_12,2,"));
  EXPECT_THAT(SavingsMarkdown({row}), HasSubstr("| decoder_12 (2) | "));
}

TEST(TransferBalanceTest, FasterLinksLoseLess) {
  const BalanceRow row = ComputeBalance(kSmall).value();
  const size_t chain = IndexOf(row.ways, kChainWay), dynprog = IndexOf(row.ways, kDynProgWay);
  EXPECT_EQ(row.slowdowns.front()[chain], row.slowdowns.back()[chain]);
  EXPECT_LT(row.slowdowns.front()[dynprog].value(), row.slowdowns.back()[dynprog].value());
  EXPECT_THAT(BalanceCsv({row}), HasSubstr("\ndecoder_12,2,32,"));
  EXPECT_THAT(BalanceMarkdown({row}), HasSubstr("\n| decoder_12 (2) | "));
  EXPECT_THAT(BalanceSvg({row}), HasSubstr("FLOP per transferred byte"));
}

TEST(ParallelTest, ResultsAreInOrderAndTheFirstErrorEndsIt) {
  int done = 0;
  const auto square = [](size_t i) { return absl::StatusOr<size_t>(i * i); };
  EXPECT_THAT(*MakeAll<size_t>(4, 2, square, [&](size_t) { ++done; }), ElementsAre(0, 1, 4, 9));
  EXPECT_EQ(done, 4);
  const auto fail = [](size_t) { return absl::StatusOr<size_t>(absl::InternalError("no")); };
  EXPECT_EQ(MakeAll<size_t>(4, 2, fail, [](size_t) {}).status().code(),
            absl::StatusCode::kInternal);
}

TEST(SvgTest, LinesLeaveOutWhatIsAboveTheTop) {
  const Panel panel{"", "", "", {{"l", {}, {}, {{1, 10}, {2, 30}, {3, 20}, {4, 10}}}}, 25};
  const std::string svg = RenderSvg("", {panel});
  // 370 pixels for 4 of x, 234 for 20 of y.
  EXPECT_THAT(svg, HasSubstr("\"M162.5 221.0M347.5 104.0L440.0 221.0\""));
}

}  // namespace
}  // namespace stowage
