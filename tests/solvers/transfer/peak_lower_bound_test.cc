// The least memory of any schedule with transfers: attained, and not undercut by exhaustive search.
#include "solvers/transfer/internal/peak_lower_bound.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/text.h"
#include "tests/solvers/random_chain.h"
#include "tests/solvers/random_transfers.h"
#include "tests/solvers/transfer_search.h"

namespace stowage::testing {
namespace {

TransferModel WideLink(std::mt19937_64* rng) {
  TransferModel transfers = RandomTransferModel(rng);
  transfers.host_memory = Bytes(int64_t{1} << 40);
  return transfers;
}

TEST(LeastOnHost, TheScheduleNeedsThatMuch) {
  std::mt19937_64 rng(71);
  for (int i = 0; i < 2000; ++i) {
    const Chain chain = RandomChain(1 + i % 12, VariedOptions(i), &rng);
    const Schedule schedule = LeastScheduleOnHost(chain);
    const absl::StatusOr<Simulation> s = Evaluator(Instance(chain, WideLink(&rng))).Run(schedule);
    ASSERT_TRUE(s.ok()) << s.status() << Describe(chain) << ScheduleText(schedule);
    EXPECT_EQ(s->peak, PeakLowerBound(chain)) << Describe(chain) << ScheduleText(schedule);
  }
}

TEST(LeastOnHost, NoScheduleNeedsLess) {
  std::mt19937_64 rng(72);
  int positive = 0;
  for (int i = 0; i < 250; ++i) {
    const Chain chain = RandomChain(i % 25 == 0 ? 3 : 1 + i % 2, VariedOptions(i), &rng);
    const Bytes least = PeakLowerBound(chain);
    if (least == Bytes(0)) continue;
    ++positive;
    EXPECT_FALSE(SearchTransfers(chain, WideLink(&rng), least.value() - 1)) << Describe(chain);
  }
  EXPECT_GT(positive, 200);
}

}  // namespace
}  // namespace stowage::testing
