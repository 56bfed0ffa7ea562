#include "solvers/viz/step_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/solvers/viz/report_sample.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kBackwardOfSecond = 12;  // where the sample peaks

// A refusal within plan and limit, of the instruction at which the sample peaks.
MemoryReading Reading() {
  const StepTimeline step = testing::SampleDrawn(false).step;
  MemoryReading reading;
  reading.instruction = kBackwardOfSecond;
  reading.before_step = Bytes(5000);
  reading.asked = Bytes(10000);
  reading.allocated =
      reading.before_step + step.events[kBackwardOfSecond].running.total() - reading.asked;
  reading.reserved = reading.allocated;
  reading.limit = Bytes(200000);
  return reading;
}

MemoryFinding Find(const MemoryReading& reading) {
  return FindMemoryCause(testing::SampleProblem(), testing::SamplePlan().schedule, reading).value();
}

TEST(MemoryFinding, SaysWhatWasPlannedThere) {
  const MemoryFinding finding = Find(Reading());
  const StepTimeline step = testing::SampleDrawn(false).step;
  EXPECT_TRUE(finding.planned == step.events[kBackwardOfSecond].running);
  EXPECT_EQ(finding.planned_before, step.events[kBackwardOfSecond - 1].held.total());
  EXPECT_EQ(finding.planned_peak, step.simulation.peak);
  EXPECT_EQ(finding.what, "backward </script><b>'\"&");
  EXPECT_EQ(finding.step, finding.planned.total());
  EXPECT_EQ(finding.beyond_plan, Bytes(0));
}

TEST(MemoryFinding, AtTheFirstInstructionTheInputAndTheSeedAreThere) {
  MemoryReading reading = Reading();
  reading.instruction = 0;
  EXPECT_EQ(Find(reading).planned_before, Bytes(1000 + 100));
}

TEST(MemoryFinding, MoreThanTheProfileSaysIsWorkspace) {
  MemoryReading reading = Reading();
  reading.asked += Bytes(7000);
  reading.limit = reading.allocated + Bytes(9000);
  const MemoryFinding finding = Find(reading);
  EXPECT_EQ(finding.cause, MemoryCause::kWorkspace);
  EXPECT_EQ(finding.beyond_plan, Bytes(7000));
  EXPECT_EQ(finding.missing, Bytes(8000));
  EXPECT_THAT(MemoryFindingText(finding), HasSubstr("takes 6.84 KiB more than the profile says"));
  // The same where it is known that nothing else was live.
  reading.held_before = finding.planned_before;
  EXPECT_EQ(Find(reading).cause, MemoryCause::kWorkspace);
}

// Errors say sizes rounded.
TEST(MemoryFinding, WhatIsWithinTheRoundingIsNoDifference) {
  MemoryReading reading = Reading();
  reading.asked += Bytes(70);
  reading.limit = reading.allocated + Bytes(10080);
  reading.rounding = Bytes(100);
  MemoryFinding finding = Find(reading);
  EXPECT_EQ(finding.cause, MemoryCause::kElsewhere);
  EXPECT_EQ(finding.beyond_plan, Bytes(0));
  reading.rounding = Bytes(20);
  finding = Find(reading);
  EXPECT_EQ(finding.cause, MemoryCause::kWorkspace);
  EXPECT_EQ(finding.beyond_plan, Bytes(70));
}

TEST(MemoryFinding, WhatWasLiveAlreadyIsNoWorkspace) {
  MemoryReading reading = Reading();
  reading.held_before = Find(reading).planned_before + Bytes(6000);
  reading.allocated += Bytes(6000);
  reading.reserved = reading.allocated;
  reading.limit = reading.allocated;
  const MemoryFinding finding = Find(reading);
  EXPECT_EQ(finding.cause, MemoryCause::kLiveBeside);
  EXPECT_THAT(MemoryFindingText(finding), HasSubstr("5.86 KiB more was live"));
}

TEST(MemoryFinding, WhatIsReservedAndNotLiveIsFragmentation) {
  MemoryReading reading = Reading();
  reading.limit = reading.allocated + Bytes(12000);
  reading.reserved = reading.limit;
  const MemoryFinding finding = Find(reading);
  EXPECT_EQ(finding.cause, MemoryCause::kFragmentation);
  EXPECT_EQ(finding.in_pieces, Bytes(12000));
  EXPECT_THAT(MemoryFindingText(finding), HasSubstr("fragmentation: 11.72 KiB is reserved"));
  // Not where even the live bytes are too many.
  reading.limit = reading.reserved = reading.allocated + Bytes(9000);
  EXPECT_EQ(Find(reading).cause, MemoryCause::kElsewhere);
}

TEST(MemoryFinding, WithinPlanAndLimitOthersHaveTheMemory) {
  const MemoryFinding finding = Find(Reading());
  EXPECT_EQ(finding.cause, MemoryCause::kElsewhere);
  // The device gave what is reserved: short of before and peak by what was asked.
  EXPECT_EQ(finding.missing, Bytes(10000));
  MemoryReading at_limit = Reading();
  at_limit.before_step += Bytes(50000);
  at_limit.allocated += Bytes(50000);
  at_limit.reserved = at_limit.allocated;
  at_limit.limit = at_limit.allocated + Bytes(4000);
  EXPECT_EQ(Find(at_limit).cause, MemoryCause::kElsewhere);
  EXPECT_EQ(Find(at_limit).missing, Bytes(6000));
  EXPECT_THAT(MemoryFindingText(Find(at_limit)), HasSubstr("is with somebody else"));
}

TEST(MemoryFinding, WhatTheAllocatorDoesNotTellIsNotGoneBy) {
  MemoryReading reading = Reading();
  reading.limit = Bytes(0);
  EXPECT_EQ(Find(reading).cause, MemoryCause::kElsewhere);
  reading.reserved = reading.allocated + Bytes(20000);
  EXPECT_EQ(Find(reading).cause, MemoryCause::kFragmentation);
  EXPECT_THAT(MemoryFindingText(Find(reading)), Not(HasSubstr("of at most")));
  reading.asked = Bytes(0);
  reading.allocated += Bytes(11000);
  EXPECT_EQ(Find(reading).cause, MemoryCause::kWorkspace);
  EXPECT_THAT(MemoryFindingText(Find(reading)), Not(HasSubstr("asked for 0")));
}

TEST(MemoryFinding, TextHasPlannedBesideActual) {
  const std::string text = MemoryFindingText(Find(Reading()));
  for (const char* part : {"instruction 12", "planned     84.01 KiB", "43.95 KiB saved tensors",
                           "actual      84.01 KiB", "4.88 KiB from before the step",
                           "reserved of at most 195.31 KiB", "cause       taken elsewhere"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(MemoryFinding, RefusesReadingsThatCannotBe) {
  const auto refused = [](const MemoryReading& reading) {
    return std::string(
        FindMemoryCause(testing::SampleProblem(), testing::SamplePlan().schedule, reading)
            .status()
            .message());
  };
  MemoryReading reading = Reading();
  reading.instruction = 14;
  EXPECT_THAT(refused(reading), HasSubstr("reading.instruction"));
  reading = Reading();
  reading.reserved = reading.allocated - Bytes(1);
  EXPECT_THAT(refused(reading), HasSubstr("reading.reserved"));
  reading = Reading();
  reading.asked = Bytes(-1);
  EXPECT_THAT(refused(reading), HasSubstr("reading.asked"));
}

}  // namespace
}  // namespace stowage
