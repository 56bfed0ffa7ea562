#include "solvers/schedule/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Text, RunsOfLikeInstructionsShareALine) {
  EXPECT_EQ(ScheduleText({ForwardNoSave(1), ForwardNoSaveFreeInput(2), ForwardNoSaveFreeInput(3),
                          ForwardSave(4), Backward(4), Discard(TensorKind::kSaved, 2)}),
            "    forward-no-save 1\n"
            "    forward-no-save-free-input 2-3\n"
            "    forward-save 4\n"
            "    backward 4\n"
            "    discard saved 2\n");
  EXPECT_EQ(ScheduleText({Backward(3), Backward(2), Backward(1)}), "    backward 3-1\n");
  // Up, then down: two runs.
  EXPECT_EQ(ScheduleText({ForwardNoSave(1), ForwardNoSave(2), ForwardNoSave(1)}),
            "    forward-no-save 1-2\n    forward-no-save 1\n");
}

TEST(Text, PartsOfOneStageRunTogether) {
  constexpr TensorKind kSaved = TensorKind::kSaved;
  EXPECT_EQ(ScheduleText({OffloadStart(kSaved, 4, 1), OffloadStart(kSaved, 4, 2),
                          OffloadStart(kSaved, 5, 3), OffloadStart(kSaved, 5),
                          OffloadStart(kSaved, 6, 7)}),
            "    offload-start saved 4 part 1-2\n"
            "    offload-start saved 5 part 3\n"
            "    offload-start saved 5\n"
            "    offload-start saved 6 part 7\n");
}

TEST(Text, APlanSaysWhatItCosts) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = Bytes(512);
  plan.prediction.makespan = Nanos(1200);
  plan.prediction.peak = Bytes(500);
  plan.prediction.recomputed_forwards = 3;
  plan.bounds.store_all_makespan = plan.bounds.lower_bound = Nanos(1000);
  plan.bounds.store_all_peak = Bytes(1024);
  plan.bounds.schedule_class = "some class";
  const std::string text = PlanText(plan);
  for (const char* part :
       {"found", "512 B (50.0% of 1.00 KiB, the peak of plain training",
        "+20.0% over the 1.0 us of plain", "3 forwards run again",
        "1.0 us: no schedule within the budget takes less; this one takes 20.0% more",
        "not proven the fastest of some class"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  plan.bounds.proven_optimal = true;
  EXPECT_THAT(PlanText(plan), HasSubstr(" proven the fastest of some class"));
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("not proven")));
  plan.bounds.lower_bound = plan.prediction.makespan;
  EXPECT_THAT(PlanText(plan), HasSubstr("no schedule within the budget is faster"));
  EXPECT_THAT(PlanText(plan), HasSubstr("takes less\n"));
}

TEST(Text, TransfersNameTheirTensors) {
  EXPECT_EQ(
      ScheduleText({OffloadStart(TensorKind::kSaved, 1), OffloadStart(TensorKind::kSaved, 2),
                    OffloadWait(TensorKind::kSaved, 2), PrefetchStart(TensorKind::kActivation, 0),
                    PrefetchWait(TensorKind::kActivation, 0)}),
      "    offload-start saved 1-2\n"
      "    offload-wait saved 2\n"
      "    prefetch-start activation 0\n"
      "    prefetch-wait activation 0\n");
}

TEST(Text, CommunicationsNameTheirStream) {
  Schedule schedule = {ForwardSave(1), ForwardSave(2), ForwardSave(3), ForwardSave(4)};
  schedule[1].stream = schedule[2].stream = Stream::kCommunication;
  EXPECT_EQ(ScheduleText(schedule),
            "    forward-save 1\n"
            "    communication: forward-save 2-3\n"
            "    forward-save 4\n");
}

TEST(Text, APlanThatCommunicatesBesideComputeSaysSo) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("communication")));
  plan.prediction.makespan = Nanos(900);
  plan.bounds.store_all_makespan = Nanos(1000);
  plan.prediction.communication_time = Nanos(300);
  plan.prediction.idle_time = Nanos(7);
  EXPECT_THAT(PlanText(plan), HasSubstr("(-10.0% over"));
  EXPECT_THAT(PlanText(plan), HasSubstr("300 ns on a stream of its own; 7 ns of waiting"));
}

TEST(Text, APlanWithTransfersSaysWhatMoves) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("host")));
  plan.prediction.offloaded = Bytes(2048);
  plan.prediction.prefetched = Bytes(1024);
  plan.prediction.host_peak = Bytes(512);
  plan.prediction.idle_time = Nanos(7);
  EXPECT_THAT(PlanText(plan), HasSubstr("2.00 KiB copied to the host, 1.00 KiB back, at most 512 B "
                                        "there; 7 ns of waiting"));
}

TEST(Text, AnInfeasiblePlanNamesTheLeastBudget) {
  Plan plan;
  plan.status = PlanStatus::kProvenInfeasible;
  plan.bounds.least_budget = Bytes(4096);
  plan.bounds.schedule_class = "some class";
  EXPECT_THAT(PlanText(plan),
              HasSubstr("needs at least 4096 bytes (4.00 KiB), proven, for some class"));
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("step")));
  plan.status = PlanStatus::kNotFound;
  plan.provenance.solver = "a_solver";
  EXPECT_THAT(PlanText(plan),
              HasSubstr("needs at least 4096 bytes (4.00 KiB), the least that a_solver "
                        "finds a schedule for"));
  plan.bounds.least_budget = Bytes(0);  // not known
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("needs at least")));
}

}  // namespace
}  // namespace stowage
