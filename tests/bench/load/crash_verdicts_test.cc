// What a load with crashes fails for, of figures and answers that are written out: the load itself takes half an hour.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "tests/bench/load/fault_tally.h"
#include "tests/bench/load/kept_decision.h"
#include "tests/bench/load/memory_trail.h"

namespace stowage {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kHalfAnHour = 1800;
constexpr double kMebibyte = 1 << 20;

// What `mebibytes` says of each second, with noise of 8% either way.
MemoryTrail TrailOf(const std::function<double(double)>& mebibytes) {
  std::mt19937 draw(7);
  std::uniform_real_distribution<double> noise(0.92, 1.08);
  MemoryTrail trail;
  for (double second = 0; second < kHalfAnHour; second += 0.25) {
    trail.Saw(second, static_cast<int64_t>(mebibytes(second) * noise(draw) * kMebibyte));
  }
  return trail;
}

bool IsFlat(const MemoryTrail& trail) { return trail.Judge(kHalfAnHour).value().is_flat(); }

TEST(MemoryTrail, NoiseAndWhatFillsInTheBeginningAreFlat) {
  EXPECT_TRUE(IsFlat(TrailOf([](double) { return 40; })));
  EXPECT_TRUE(IsFlat(TrailOf([](double second) { return second < 300 ? 20 + second / 2 : 170; })));
  // What goes up and down: solves, and what waits while Redis is away.
  EXPECT_TRUE(IsFlat(TrailOf([](double second) { return int(second) % 30 < 5 ? 90 : 40; })));
}

TEST(MemoryTrail, ALeakIsNotFlat) {
  // 27 MiB in the 15 minutes between the middles of the second and the last quarter, of which 20 are allowed.
  EXPECT_FALSE(IsFlat(TrailOf([](double second) { return 40 + 0.03 * second; })));
  // Of a large server what is a tenth is allowed, no more.
  EXPECT_FALSE(IsFlat(TrailOf([](double second) { return 1000 + 0.2 * second; })));
  EXPECT_TRUE(IsFlat(TrailOf([](double second) { return 1000 + 0.1 * second; })));
}

TEST(MemoryTrail, TheLimitIsATenthAndSixteenMebibytes) {
  MemoryVerdict verdict;
  verdict.early_bytes = 100 << 20;
  verdict.late_bytes = (110 << 20) + (16 << 20);
  EXPECT_TRUE(verdict.is_flat());
  ++verdict.late_bytes;
  EXPECT_FALSE(verdict.is_flat());
}

TEST(MemoryTrail, OfAServerThatWasRestartedTheTimeSinceCounts) {
  // Large before, small and growing since.
  const auto leaking = [](double second) { return second < 800 ? 100 : 20 + (second - 800) / 15; };
  MemoryTrail trail = TrailOf(leaking);
  EXPECT_TRUE(IsFlat(trail)) << "as one life it would pass";
  trail.Started(800);
  const auto verdict = trail.Judge(kHalfAnHour);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->from_second, 800);
  EXPECT_FALSE(verdict->is_flat());
}

TEST(MemoryTrail, LivesThatAreShortCountTogether) {
  // Each begins with 20 MiB and ends with 40: what grows is the life, not the server.
  const auto life = [](double second) { return 20 + 20 * (int(second) % 25) / 25.0; };
  MemoryTrail trail = TrailOf(life);
  trail.Started(1790);
  ASSERT_TRUE(trail.Judge(kHalfAnHour).has_value());
  EXPECT_EQ(trail.Judge(kHalfAnHour)->from_second, 0);
  EXPECT_TRUE(IsFlat(trail));
  // Each begins with more than the one before.
  trail = TrailOf([&life](double second) { return life(second) + second / 20; });
  trail.Started(1790);
  EXPECT_FALSE(IsFlat(trail));
}

TEST(MemoryTrail, WithoutLooksThereIsNoVerdict) {
  EXPECT_FALSE(MemoryTrail().Judge(kHalfAnHour).has_value());
  MemoryTrail trail;
  for (int second = 0; second < 1000; ++second) trail.Saw(second, 1 << 20);
  trail.Saw(1000, 0);  // it has ended
  EXPECT_EQ(trail.most_bytes(), 1 << 20);
  EXPECT_FALSE(trail.Judge(kHalfAnHour).has_value()) << "nothing of the last quarter";
  EXPECT_TRUE(trail.Judge(1000).has_value());
}

FaultTally AllCame() {
  FaultTally tally;
  for (const FaultKind& kind : FaultKinds()) tally.Came(kind.name);
  return tally;
}

TEST(FaultTally, EachKindHasToComeOrToBeLeftOut) {
  EXPECT_TRUE(AllCame().Judge({}).ok());
  FaultTally tally;
  for (const char* name : {"kill", "kill", "stop", "redis", "failover", "decisions"}) {
    tally.Came(name);
  }
  tally.Cannot("disk", "no tmpfs may be mounted");
  const absl::Status judged = tally.Judge({});
  EXPECT_TRUE(absl::IsFailedPrecondition(judged)) << judged;
  EXPECT_THAT(
      std::string(judged.message()),
      AllOf(HasSubstr("disk (no tmpfs may be mounted)"), HasSubstr("clock (no time for it)"),
            HasSubstr("--allow_skipped=disk,clock"), Not(HasSubstr("failover"))));
  EXPECT_TRUE(tally.Judge({"disk", "clock"}).ok());
  EXPECT_FALSE(tally.Judge({"disk"}).ok());
}

TEST(FaultTally, WhatCannotComeIsSaidBeforeAnythingDid) {
  FaultTally tally;
  EXPECT_TRUE(tally.CheckPossible({}).ok());
  tally.Cannot("disk", "no tmpfs may be mounted");
  tally.Cannot("decisions", "without --redis or --sentinel");
  const absl::Status possible = tally.CheckPossible({"disk"});
  EXPECT_TRUE(absl::IsFailedPrecondition(possible)) << possible;
  EXPECT_EQ(possible.message(),
            "faults that cannot be injected: decisions (without --redis or --sentinel); "
            "--allow_skipped=decisions does without them");
  EXPECT_TRUE(tally.CheckPossible({"disk", "decisions"}).ok());
  tally.LeaveOut("decisions");
  EXPECT_TRUE(tally.CheckPossible({"disk"}).ok());
}

TEST(FaultTally, WhatIsLeftOutIsNeitherMissedNorReported) {
  FaultTally tally;
  for (const char* name : {"kill", "stop", "disk", "clock", "redis", "failover"}) tally.Came(name);
  EXPECT_THAT(std::string(tally.Judge({}).message()), HasSubstr("decisions (no time for it)"));
  EXPECT_THAT(tally.Report(), HasSubstr("decisions"));
  EXPECT_EQ(tally.Kinds().size(), FaultKinds().size());
  tally.LeaveOut("decisions");
  EXPECT_TRUE(tally.Judge({}).ok()) << tally.Judge({});
  EXPECT_THAT(tally.Report(), AllOf(HasSubstr("failover"), Not(HasSubstr("decisions"))));
  EXPECT_EQ(tally.Kinds().size(), FaultKinds().size() - 1);
}

TEST(FaultTally, ReportNamesEachKindAllowedOrNot) {
  FaultTally tally;
  tally.Came("kill");
  tally.Came("kill");
  tally.Cannot("failover", "without --sentinel");
  const std::string report = tally.Report();
  for (const FaultKind& kind : FaultKinds()) EXPECT_THAT(report, HasSubstr(kind.name));
  EXPECT_THAT(report, HasSubstr("NOT INJECTED: without --sentinel"));
  EXPECT_THAT(report.substr(0, report.find('\n')), HasSubstr(" 2"));
}

TEST(FaultTally, NamesOfNoKindAreRefused) {
  EXPECT_TRUE(CheckFaultNames({}).ok());
  EXPECT_TRUE(
      CheckFaultNames({"kill", "stop", "disk", "clock", "redis", "failover", "decisions"}).ok());
  const absl::Status unknown = CheckFaultNames({"disk", "etcd"});
  EXPECT_TRUE(absl::IsInvalidArgument(unknown)) << unknown;
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("etcd"));
}

KeptDecision DecisionAs(DecidedAs as) {
  KeptDecision decision{v1::PlanKey(), 1000, 3, as, {}};
  decision.key.set_digest(std::string("\x0a\x1b\x2c\x3d\x4e\x5f\x60\x71") + std::string(24, 'x'));
  return decision;
}

void AddPlan(int64_t budget_bytes, int64_t revision, bool pinned, v1::ListPlansResponse* listed) {
  v1::PlanSummary* const plan = listed->add_plans();
  plan->set_budget_bytes(budget_bytes);
  plan->set_revision(revision);
  plan->set_pinned(pinned);
}

TEST(KeptDecision, APinHoldsWhereItsRevisionIsPinned) {
  const KeptDecision pin = DecisionAs(DecidedAs::kPinned);
  v1::ListPlansResponse listed;
  AddPlan(500, 3, false, &listed);
  AddPlan(1000, 2, false, &listed);
  AddPlan(1000, 3, true, &listed);
  EXPECT_THAT(WhatIsLost(pin, listed), IsEmpty());
  listed.mutable_plans(2)->set_pinned(false);
  EXPECT_THAT(WhatIsLost(pin, listed), HasSubstr("not pinned"));
}

TEST(KeptDecision, APinThatIsMissingIsLost) {
  const KeptDecision pin = DecisionAs(DecidedAs::kPinned);
  v1::ListPlansResponse listed;
  EXPECT_THAT(WhatIsLost(pin, listed),
              AllOf(HasSubstr("revision 3 for 1000 bytes of key 0a1b2c3d4e5f6071"),
                    HasSubstr("nothing is there")));
  AddPlan(1000, 4, true, &listed);  // another one
  EXPECT_THAT(WhatIsLost(pin, listed), AllOf(HasSubstr("revision 3"), HasSubstr("other plans")));
}

TEST(KeptDecision, HasToHoldAtOnceWhereItsServerStillHasTheDisk) {
  KeptDecision pin = DecisionAs(DecidedAs::kPinned);
  pin.on = {1, 2};
  EXPECT_TRUE(HasOnDisk(pin, {1, 2}));
  EXPECT_FALSE(HasOnDisk(pin, {0, 2})) << "another server hears of it later";
  EXPECT_FALSE(HasOnDisk(pin, {1, 3})) << "its server has lost the disk that had it";
  // Acknowledged on the new one.
  pin.on = {1, 3};
  EXPECT_TRUE(HasOnDisk(pin, {1, 3}));
}

TEST(KeptDecision, AnUnpinningHoldsWhereNothingIsPinned) {
  const KeptDecision unpinning = DecisionAs(DecidedAs::kUnpinned);
  v1::ListPlansResponse listed;
  EXPECT_THAT(WhatIsLost(unpinning, listed), IsEmpty()) << "caches may lose what is not pinned";
  AddPlan(1000, 3, false, &listed);
  EXPECT_THAT(WhatIsLost(unpinning, listed), IsEmpty());
  AddPlan(1000, 4, true, &listed);
  EXPECT_THAT(WhatIsLost(unpinning, listed), AllOf(HasSubstr("revision 3"), HasSubstr("again")));
}

}  // namespace
}  // namespace stowage
