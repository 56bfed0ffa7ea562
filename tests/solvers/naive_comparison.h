// An evaluator's result against that of a naive replay of the same schedule.
#ifndef STOWAGE_TESTS_SOLVERS_NAIVE_COMPARISON_H_
#define STOWAGE_TESTS_SOLVERS_NAIVE_COMPARISON_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "solvers/schedule/simulation.h"
#include "tests/solvers/naive_replay.h"

namespace stowage::testing {

// Of a schedule that both call valid: all sums, and when every instruction runs.
inline void ExpectAsNaive(const Simulation& s, const std::vector<TimelinePoint>& timeline,
                          const NaiveResult& naive) {
  EXPECT_EQ(s.makespan.value(), naive.makespan);
  EXPECT_EQ(s.peak.value(), naive.peak);
  EXPECT_EQ(s.recompute_time.value(), naive.recompute_time);
  EXPECT_EQ(s.recomputed_forwards, naive.recomputed_forwards);
  EXPECT_EQ(s.idle_time.value(), naive.idle_time);
  EXPECT_EQ(s.host_peak.value(), naive.host_peak);
  EXPECT_EQ(s.offloaded.value(), naive.offloaded);
  EXPECT_EQ(s.prefetched.value(), naive.prefetched);
  EXPECT_EQ(s.communication_time.value(), naive.communication_time);
  ASSERT_EQ(timeline.size(), naive.spans.size());
  for (size_t i = 0; i < timeline.size(); ++i) {
    EXPECT_EQ(timeline[i].start.value(), naive.spans[i].first) << i;
    EXPECT_EQ(timeline[i].end.value(), naive.spans[i].second) << i;
  }
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_NAIVE_COMPARISON_H_
