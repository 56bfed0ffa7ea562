#include "solvers/schedule/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <random>
#include <string>

#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "tests/solvers/naive_replay.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

// Two stages with sizes that are sums of distinct powers of ten: every term of the accounting shows
// up as a digit.
Chain Digits() {
  ChainSpec spec;
  spec.input = Bytes(1);
  spec.input_gradient = Bytes(3);
  Stage s;
  s.forward_time = Nanos(5);
  s.backward_time = Nanos(7);
  s.output = Bytes(10);
  s.saved = Bytes(40);
  s.output_gradient = Bytes(200);
  s.forward_saving_overhead = Bytes(1000);
  s.forward_overhead = Bytes(20000);
  s.backward_overhead = Bytes(300000);
  spec.stages.push_back(s);
  Stage loss;
  loss.forward_time = Nanos(11);
  loss.saved = Bytes(4000000);
  loss.output = Bytes(1000000);
  loss.output_gradient = Bytes(50000000);
  spec.loss = loss;
  return *Chain::Create(spec);
}

std::vector<TimelinePoint> Timeline(const Chain& chain, const Schedule& schedule) {
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> result = Evaluator(chain).Run(schedule, &timeline);
  EXPECT_TRUE(result.ok()) << result.status();
  return timeline;
}

TEST(Simulate, CountsEveryTermOfTheTable) {
  const std::vector<TimelinePoint> t = Timeline(
      Digits(), {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardSave(1), Backward(1)});
  // Held from the start: a^0 and the seed gradient.
  EXPECT_EQ(t[0].running, Bytes(1 + 50000000 + 10 + 20000));
  EXPECT_EQ(t[0].held, Bytes(1 + 50000000 + 10));
  EXPECT_EQ(t[1].running, Bytes(1 + 50000000 + 10 + 4000000));
  EXPECT_EQ(t[1].held, Bytes(1 + 50000000 + 10 + 4000000));
  // The backward of the loss drops its seed, its saved tensors and the plain a^1, and leaves
  // delta^1.
  EXPECT_EQ(t[2].running, Bytes(1 + 50000000 + 10 + 4000000));
  EXPECT_EQ(t[2].held, Bytes(1 + 200));
  EXPECT_EQ(t[3].running, Bytes(1 + 200 + 40 + 1000));
  EXPECT_EQ(t[3].held, Bytes(1 + 200 + 40));
  EXPECT_EQ(t[4].running, Bytes(1 + 200 + 40 + 300000));
  EXPECT_EQ(t[4].held, Bytes(3));
  EXPECT_EQ(t[4].end, Nanos(5 + 11 + 5 + 7));
}

// Digits, the first stage of which stops early when it runs again.
Chain StoppingDigits(std::optional<Bytes> overhead) {
  ChainSpec spec = Digits().spec();
  spec.stages[0].recompute_saving_time = Nanos(2);
  spec.stages[0].recompute_saving_overhead = overhead;
  return *Chain::Create(spec);
}

TEST(Simulate, ARecomputeRightBeforeItsBackwardStopsEarly) {
  const Schedule schedule = {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardSave(1),
                             Backward(1)};
  const Chain chain = StoppingDigits(Bytes(6));
  const std::vector<TimelinePoint> t = Timeline(chain, schedule);
  EXPECT_EQ(t[0].end, Nanos(5));
  // What it saves without its output, and without a gradient's digit more.
  EXPECT_EQ(t[3].running, Bytes(1 + 200 + 30 + 6));
  EXPECT_EQ(t[3].held, Bytes(1 + 200 + 30));
  EXPECT_EQ(t[3].end - t[3].start, Nanos(2));
  EXPECT_EQ(t[4].running, Bytes(1 + 200 + 30 + 300000));
  EXPECT_EQ(t[4].held, Bytes(3));
  const absl::StatusOr<Simulation> s = Evaluator(chain).Run(schedule);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->recompute_time, Nanos(2));
  EXPECT_EQ(s->recomputed_forwards, 1);
  // Without a word of its overhead it takes while it runs what one that goes on takes.
  EXPECT_EQ(Timeline(StoppingDigits(std::nullopt), schedule)[3].running,
            Bytes(1 + 200 + 40 + 1000));
}

TEST(Simulate, ARecomputeGoesOnWhereSomethingComesInBetween) {
  const Chain chain = StoppingDigits(Bytes(6));
  constexpr TensorKind kSaved = TensorKind::kSaved;
  const Instruction drop_plain = Discard(TensorKind::kActivation, 1);
  // The recompute is the instruction before the last three.
  const Schedule goes_on[] = {
      {ForwardNoSave(1), ForwardSave(1), ForwardSave(2), Backward(2), Backward(1)},
      {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardSave(1), DropSavedKeepOutput(1),
       ForwardSave(1), Backward(1)},
      {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardSave(1), Discard(kSaved, 1),
       ForwardSave(1), Backward(1)},
  };
  const size_t at[] = {1, 3, 3};
  for (size_t k = 0; k < 3; ++k) {
    const std::vector<TimelinePoint> t = Timeline(chain, goes_on[k]);
    ASSERT_EQ(t.size(), goes_on[k].size());
    EXPECT_EQ(t[at[k]].end - t[at[k]].start, Nanos(5)) << k;
  }
  // To drop the plain output, which the backward does not need either, is nothing to it.
  const std::vector<TimelinePoint> t =
      Timeline(chain, {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardNoSave(1),
                       ForwardSave(1), drop_plain, Backward(1)});
  ASSERT_EQ(t.size(), 7u);
  EXPECT_EQ(t[4].end - t[4].start, Nanos(2));
  EXPECT_EQ(t[5].held, Bytes(1 + 200 + 30));
}

TEST(Simulate, AddsUpTimeAndRecomputes) {
  const absl::StatusOr<Simulation> s = Evaluator(Digits()).Run(
      {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardSave(1), Backward(1)});
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(s->makespan, Nanos(28));
  EXPECT_EQ(s->recompute_time, Nanos(5));
  EXPECT_EQ(s->recomputed_forwards, 1);
  EXPECT_EQ(s->peak, Bytes(1 + 50000000 + 10 + 4000000));
  EXPECT_EQ(s->peak_instruction, 1u);
  EXPECT_EQ(s->idle_time, Nanos(0));
}

TEST(Simulate, StatesBetweenOpsCountToo) {
  // A backward with a small overhead that leaves a gradient larger than everything before.
  ChainSpec spec;
  spec.input_gradient = Bytes(100);
  spec.stages.resize(1);
  const absl::StatusOr<Chain> chain = Chain::Create(spec);
  const absl::StatusOr<Simulation> s = Evaluator(*chain).Run(StoreAllSchedule(*chain));
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->peak, Bytes(100));
}

struct Refusal {
  Schedule schedule;
  const char* why;
};

TEST(Simulate, RefusesWhatIsNotValidAndSaysWhy) {
  const Chain chain = Digits();
  Instruction offload{Op::kOffloadStart, 1};
  Instruction other_stream = ForwardSave(1);
  other_stream.stream = Stream::kToHost;
  const Refusal refusals[] = {
      {{}, "ends before backward 2"},
      {{ForwardSave(2)}, "activation 1, is not held"},
      {{ForwardSave(1), ForwardNoSaveFreeInput(2)}, "activation 1, is not held"},
      {{ForwardSave(1), ForwardSave(1)}, "held already"},
      {{ForwardNoSave(1), ForwardNoSave(1)}, "held already"},
      {{ForwardSave(1), Backward(1)}, "the next backward is 2"},
      {{ForwardNoSave(1), Backward(2)}, "saved tensors are not held"},
      {{ForwardNoSave(1), ForwardSave(2), Discard(TensorKind::kActivation, 1), Backward(2)},
       "activation 1, is not held"},
      {{Discard(TensorKind::kSaved, 1)}, "the tensor is not held"},
      {{Discard(TensorKind::kSaved, 0)}, "stages are 1 to 2"},
      {{DropSavedKeepOutput(1)}, "saved tensors are not held"},
      {{ForwardSave(1), ForwardNoSave(1), DropSavedKeepOutput(1)}, "plain output is held already"},
      {{ForwardSave(0)}, "stages are 1 to 2"},
      {{ForwardSave(3)}, "stages are 1 to 2"},
      {{ForwardSave(-5)}, "stages are 1 to 2"},
      {{offload}, "transfers"},
      {{other_stream}, "compute stream"},
  };
  for (const Refusal& r : refusals) {
    const absl::StatusOr<Simulation> s = Evaluator(chain).Run(r.schedule);
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument) << r.why;
    EXPECT_THAT(std::string(s.status().message()), HasSubstr(r.why));
  }
}

TEST(Simulate, RefusesBackwardsBeyondTheFirst) {
  const Chain chain = Digits();
  Schedule schedule = StoreAllSchedule(chain);
  schedule.push_back(Backward(1));
  EXPECT_THAT(std::string(Evaluator(chain).Run(schedule).status().message()),
              HasSubstr("all backwards have run"));
}

TEST(Simulate, NeverRecomputesWhatMustBeKept) {
  for (const bool collective : {false, true}) {
    ChainSpec spec = Digits().spec();
    spec.stages[0].collective = collective;
    spec.stages[0].must_keep = !collective;
    const absl::StatusOr<Chain> chain = Chain::Create(spec);
    EXPECT_TRUE(Evaluator(*chain).Run(StoreAllSchedule(*chain)).ok());
    const absl::StatusOr<Simulation> s = Evaluator(*chain).Run(
        {ForwardNoSave(1), ForwardSave(2), Backward(2), ForwardSave(1), Backward(1)});
    EXPECT_THAT(std::string(s.status().message()), HasSubstr("must not be recomputed"));
  }
}

TEST(Simulate, RefusesAMakespanThatOverflows) {
  ChainSpec spec;
  spec.stages.resize(1);
  spec.stages[0].forward_time = Nanos(kMaxTimeTotal / 4);
  const absl::StatusOr<Chain> chain = Chain::Create(spec);
  ASSERT_TRUE(chain.ok()) << chain.status();
  Schedule schedule;
  for (int i = 0; i < 100; ++i) {
    schedule.push_back(ForwardNoSave(1));
    schedule.push_back(Discard(TensorKind::kActivation, 1));
  }
  EXPECT_THAT(std::string(Evaluator(*chain).Run(schedule).status().message()),
              HasSubstr("overflows"));
}

void ExpectEqualToNaive(const Chain& chain, const Schedule& schedule) {
  const testing::NaiveResult naive = testing::NaiveReplay(chain, schedule);
  const absl::StatusOr<Simulation> s = Evaluator(chain).Run(schedule);
  ASSERT_EQ(s.ok(), naive.valid) << s.status() << "\n" << testing::Describe(chain);
  if (!s.ok()) return;
  EXPECT_EQ(s->makespan.value(), naive.makespan) << testing::Describe(chain);
  EXPECT_EQ(s->peak.value(), naive.peak) << testing::Describe(chain);
  EXPECT_EQ(s->recompute_time.value(), naive.recompute_time);
  EXPECT_EQ(s->recomputed_forwards, naive.recomputed_forwards);
}

TEST(Simulate, AgreesWithANaiveReplayOnRandomSchedules) {
  std::mt19937_64 rng(1);
  testing::RandomChainOptions options;
  options.with_flags = true;
  options.with_input_gradient = true;
  for (int i = 0; i < 3000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 8, options, &rng);
    const Schedule schedule = testing::RandomSchedule(chain, &rng);
    ASSERT_TRUE(testing::NaiveReplay(chain, schedule).valid) << testing::Describe(chain);
    ExpectEqualToNaive(chain, schedule);
  }
}

TEST(Simulate, AgreesWithANaiveReplayOnBrokenSchedules) {
  std::mt19937_64 rng(2);
  testing::RandomChainOptions options;
  options.with_flags = true;
  for (int i = 0; i < 5000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 6, options, &rng);
    Schedule schedule = testing::RandomSchedule(chain, &rng);
    const size_t at = std::uniform_int_distribution<size_t>(0, schedule.size() - 1)(rng);
    switch (i % 3) {
      case 0:
        schedule.erase(schedule.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        schedule[at].op = static_cast<Op>(i % 6);
        break;
      default:
        schedule[at].stage += i % 2 == 0 ? 1 : -1;
    }
    ExpectEqualToNaive(chain, schedule);
  }
}

TEST(Evaluator, RefusesAPlanOverItsBudget) {
  const Chain chain = Digits();
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = StoreAllSchedule(chain);
  plan.budget = Evaluator(chain).Run(plan.schedule)->peak;
  EXPECT_TRUE(ValidatePlan(chain, &plan).ok());
  EXPECT_EQ(plan.prediction.makespan, chain.ideal_time());
  EXPECT_EQ(plan.bounds.store_all_peak, plan.budget);
  EXPECT_EQ(plan.gap(), 0.0);
  plan.budget -= Bytes(1);
  EXPECT_EQ(ValidatePlan(chain, &plan).code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace stowage
