#include "solvers/transfer/internal/segment_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/random_chain.h"

namespace stowage::testing {
namespace {

int Between(int least, int most, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(least, most)(*rng);
}

// A memory-persistent schedule of stages s..t, drawn from all of them: Theorem 1 of Beaumont et al. 2019.
void AppendPersistent(int s, int t, std::mt19937_64* rng, Schedule* schedule) {
  const int kept_input = s < t ? Between(s, t, rng) : s;
  if (kept_input == s) {
    schedule->push_back(ForwardSave(s));
    if (s < t) AppendPersistent(s + 1, t, rng, schedule);
    schedule->push_back(Backward(s));
    return;
  }
  schedule->push_back(ForwardNoSave(s));
  for (int l = s + 1; l < kept_input; ++l) schedule->push_back(ForwardNoSaveFreeInput(l));
  AppendPersistent(kept_input, t, rng, schedule);
  AppendPersistent(s, kept_input - 1, rng, schedule);
}

// The second run and the backwards of stages i..j, of which j has been saved if `saved`.
Schedule SegmentBackward(int i, int j, bool saved, std::mt19937_64* rng) {
  Schedule schedule;
  AppendPersistent(i, saved ? j - 1 : j, rng, &schedule);
  if (!saved) return schedule;
  const auto first = std::find_if(schedule.begin(), schedule.end(),
                                  [](const Instruction& x) { return x.op == Op::kBackward; });
  schedule.insert(first, Backward(j));
  return schedule;
}

// A whole step around it: the other stages are saved, the segment's forwards keep nothing before it but stage j.
struct Step {
  Schedule schedule;
  size_t begin;  // of the segment's backward
};

Step StepAround(const Chain& chain, int i, int j, bool saved, const Schedule& segment) {
  Schedule schedule;
  const int last = chain.length() + 1;
  for (int l = 1; l < i; ++l) schedule.push_back(ForwardSave(l));
  for (int l = i; l <= j; ++l) {
    if (l == j && saved) {
      // The input goes: its second run brings it back.
      schedule.push_back(ForwardSave(l));
      if (l > i) schedule.push_back(Discard(TensorKind::kActivation, l - 1));
    } else {
      schedule.push_back(l == i ? ForwardNoSave(l) : ForwardNoSaveFreeInput(l));
    }
  }
  for (int l = j + 1; l <= last; ++l) schedule.push_back(ForwardSave(l));
  for (int l = last; l > j; --l) schedule.push_back(Backward(l));
  const size_t begin = schedule.size();
  schedule.insert(schedule.end(), segment.begin(), segment.end());
  for (int l = i - 1; l >= 1; --l) schedule.push_back(Backward(l));
  return {schedule, begin};
}

void ExpectTheEvaluatorsNumbers(const Chain& chain, int i, int j, bool saved,
                                std::mt19937_64* rng) {
  constexpr double kPerByte = 3.5;
  const Schedule segment = SegmentBackward(i, j, saved, rng);
  const Step step = StepAround(chain, i, j, saved, segment);
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> run = Evaluator(chain).Run(step.schedule, &timeline);
  ASSERT_TRUE(run.ok()) << run.status() << Describe(chain);
  // Beside the segment: a^0 and what the stages below it have saved.
  Bytes beside = chain.activation(0);
  Nanos ideal;
  for (int l = 1; l < i; ++l) beside += chain.stage(l).saved;
  for (int l = i; l <= j; ++l) {
    ideal += chain.stage(l).backward_time;
    // The last runs right before its backward.
    if (l < j) ideal += chain.stage(l).forward_time;
    if (l == j && !saved) ideal += chain.stage(l).stopped_time();
  }
  const size_t end = step.begin + segment.size();
  Bytes need;
  double rush = 0;
  for (size_t at = step.begin; at < end; ++at) {
    // The last backward of the chain drops a^0, which is the input of a segment from stage 1 on.
    const Bytes dropped = i == 1 && at + 1 == end ? chain.activation(0) : Bytes(0);
    const Bytes now = std::max(timeline[at].running, timeline[at].held + dropped) - beside;
    need = std::max(need, now);
    const Nanos lead = timeline[end - 1].end - timeline[at].end;
    rush = std::max(
        rush, kPerByte * static_cast<double>(now.value()) - static_cast<double>(lead.value()));
  }
  const SegmentOption option = SegmentReplay(chain, kPerByte).Run(i, j, saved, segment);
  EXPECT_EQ(option.need, need.value()) << Describe(chain);
  EXPECT_EQ(option.rush, rush) << Describe(chain);
  const Nanos took = timeline[end - 1].end - timeline[step.begin].start;
  EXPECT_EQ(option.overhead, static_cast<double>((took - ideal).value())) << Describe(chain);
}

TEST(SegmentReplay, SaysWhatTheEvaluatorSays) {
  std::mt19937_64 rng(1);
  for (int round = 0; round < 3000; ++round) {
    RandomChainOptions options;
    options.max_size = round % 2 == 0 ? 5 : 1000;
    options.with_input_gradient = round % 3 == 0;
    options.with_stops = round % 5 > 2;
    const int length = 2 + round % 9;
    const Chain chain = RandomChain(length, options, &rng);
    const int i = Between(1, length, &rng), j = Between(i, length, &rng);
    ExpectTheEvaluatorsNumbers(chain, i, j, j > i && round % 4 < 2, &rng);
    if (HasFailure()) return;
  }
}

// One object for many segments, as the costs of a chain use it: nothing is left of one for the next.
TEST(SegmentReplay, IsTheSameWhateverItHasReplayed) {
  std::mt19937_64 rng(2);
  const Chain chain = RandomChain(10, {}, &rng);
  SegmentReplay used(chain, 1.0);
  for (int round = 0; round < 500; ++round) {
    const int i = Between(1, 10, &rng), j = Between(i, 10, &rng);
    const Schedule segment = SegmentBackward(i, j, false, &rng);
    const SegmentOption again = used.Run(i, j, false, segment);
    const SegmentOption fresh = SegmentReplay(chain, 1.0).Run(i, j, false, segment);
    EXPECT_EQ(again.need, fresh.need);
    EXPECT_EQ(again.overhead, fresh.overhead);
    EXPECT_EQ(again.rush, fresh.rush);
  }
}

}  // namespace
}  // namespace stowage::testing
