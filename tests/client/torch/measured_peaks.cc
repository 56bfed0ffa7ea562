#include "tests/client/torch/measured_peaks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

namespace stowage {

void ExpectPeaksAsPredicted(const Schedule& schedule, const MeasuredStep& measured,
                            const std::vector<TimelinePoint>& planned, Bytes inputs) {
  ASSERT_EQ(planned.size(), schedule.size());
  ASSERT_EQ(measured.instructions.size(), schedule.size());
  Bytes most;
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Bytes took = measured.instructions[i].peak;
    EXPECT_LE(took.value(), (planned[i].running + inputs).value())
        << "instruction " << i << ", " << ToString(schedule[i]);
    most = std::max(most, took);
  }
  EXPECT_EQ(most, measured.peak);
}

}  // namespace stowage
