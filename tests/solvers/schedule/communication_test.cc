// The rules of communication beside compute, one by one: time and memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "tests/solvers/schedule/branches.h"
#include "tests/solvers/schedule/digits_chain.h"

namespace stowage {
namespace {

using testing::Branches;
using testing::BranchesSchedule;
using testing::BranchesSpec;
using testing::Communicating;
using testing::DigitsLink;
using ::testing::HasSubstr;
using testing::Op;
using testing::operator+;
using Timeline = std::vector<TimelinePoint>;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

const Schedule kBackwards = {Backward(5), Backward(4), Backward(3), Backward(2), Backward(1)};

struct Want {
  int64_t start, end, running, held;
};

void ExpectTimeline(const Timeline& timeline, const std::vector<Want>& want) {
  ASSERT_EQ(timeline.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(timeline[i].start, Nanos(want[i].start)) << i;
    EXPECT_EQ(timeline[i].end, Nanos(want[i].end)) << i;
    EXPECT_EQ(timeline[i].running, Bytes(want[i].running)) << i;
    EXPECT_EQ(timeline[i].held, Bytes(want[i].held)) << i;
  }
}

TEST(Communication, RunsBesideTheOtherBranchOfAGraph) {
  Timeline t;
  const absl::StatusOr<Simulation> s = Evaluator(Branches()).Run(BranchesSchedule(), &t);
  ASSERT_TRUE(s.ok()) << s.status();
  ExpectTimeline(t, {{0, 10, 1, 1},
                     {10, 60, 100111, 100111},  // with its overhead until 5 reads it
                     {10, 20, 101111, 101111},  // reads what 2 reads
                     {20, 30, 111111, 111111},
                     {60, 70, 11111, 11111},  // has waited for 2
                     {70, 170, 31131, 31131},
                     {170, 320, 231133, 231133},  // keeps extras, gradient and overhead
                     {170, 270, 233133, 213133},
                     {320, 420, 13013, 11013},  // adds to the gradient that 2 makes
                     {420, 520, 11013, 11011}});
  EXPECT_EQ(s->makespan, Nanos(520));
  EXPECT_EQ(s->idle_time, Nanos(30 + 50));
  EXPECT_EQ(s->communication_time, Nanos(50 + 150));
  EXPECT_EQ(s->peak, Bytes(233133));
  EXPECT_EQ(s->peak_instruction, 7u);
}

// Both branches read it.
TEST(Communication, HoldsUpWhatWouldDropWhatItReads) {
  Schedule schedule = BranchesSchedule();
  schedule.insert(schedule.begin() + 3, Discard(kActivation, 1));
  Timeline t;
  ASSERT_TRUE(Evaluator(Branches()).Run(schedule, &t).ok());
  EXPECT_EQ(t[2].end, Nanos(20));
  EXPECT_EQ(t[3].start, Nanos(60));
  EXPECT_EQ(t[3].end, Nanos(60));
  EXPECT_EQ(t[3].held, Bytes(10 + 100 + 1000));
  EXPECT_EQ(t[4].start, Nanos(60));
}

TEST(Communication, KeepsItsMemoryAlsoAfterItsEndUntilItIsWaitedFor) {
  GraphSpec spec = BranchesSpec();
  spec.vertices[2].forward_time = Nanos(1000);
  Timeline t;
  const absl::StatusOr<Simulation> s = Evaluator(*Graph::Create(spec)).Run(BranchesSchedule(), &t);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(t[1].end, Nanos(60));
  EXPECT_EQ(t[3].start, Nanos(1010));
  EXPECT_EQ(t[3].running, Bytes(111111));
  EXPECT_EQ(t[4].start, Nanos(1020));  // no wait
  EXPECT_EQ(t[4].running, Bytes(11111));
  EXPECT_EQ(s->idle_time, Nanos(50));
}

TEST(Communication, EndsTheStep) {
  GraphSpec spec = BranchesSpec();
  spec.vertices[0].collective = true;
  Schedule schedule = BranchesSchedule();
  schedule.back() = Communicating(schedule.back());
  Timeline t;
  const absl::StatusOr<Simulation> s = Evaluator(*Graph::Create(spec)).Run(schedule, &t);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(t.back().start, Nanos(420));
  EXPECT_EQ(t.back().end, Nanos(520));
  EXPECT_EQ(s->makespan, Nanos(520));
  EXPECT_EQ(s->idle_time, Nanos(30 + 50 + 100));
}

// 2 and 3 both communicate, and 3 does not use what 2 does.
TEST(Communication, RunsInOrderAndOneAtATime) {
  GraphSpec spec = BranchesSpec();
  spec.vertices[2].collective = true;
  Schedule schedule = BranchesSchedule();
  schedule[2] = Communicating(schedule[2]);
  Timeline t;
  ASSERT_TRUE(Evaluator(*Graph::Create(spec)).Run(schedule, &t).ok());
  EXPECT_EQ(t[2].start, Nanos(60));
  EXPECT_EQ(t[2].end, Nanos(70));
  EXPECT_EQ(t[2].running, Bytes(101111));
  // 4 reads 3 alone, and 2 has ended before that.
  EXPECT_EQ(t[3].start, Nanos(70));
  EXPECT_EQ(t[3].running, Bytes(11111));
}

// One that reads what another makes follows it, and compute need not know.
TEST(Communication, DoesNotLetComputeWaitForItself) {
  GraphSpec spec = BranchesSpec();
  spec.vertices[0].collective = true;
  Schedule schedule = BranchesSchedule();
  schedule[0] = Communicating(schedule[0]);
  Timeline t;
  ASSERT_TRUE(Evaluator(*Graph::Create(spec)).Run(schedule, &t).ok());
  EXPECT_EQ(t[0].end, Nanos(10));
  EXPECT_EQ(t[1].start, Nanos(10));
  EXPECT_EQ(t[2].start, Nanos(10));  // reads 1
  EXPECT_EQ(t[2].running, Bytes(101111));
  schedule[2] = Discard(kSaved, 2);
  schedule.insert(schedule.begin() + 3, ForwardSave(3));
  EXPECT_THAT(std::string(Evaluator(*Graph::Create(spec)).Run(schedule).status().message()),
              HasSubstr("its extras are not held"));
}

TEST(Communication, LetsReadersOfAViewWaitForTheViewAlone) {
  GraphSpec spec;
  spec.vertices = {Op(1, {}, 1, 0), Op(2, {1}, 1, 0), Op(3, {1}, 10, 0), Op(4, {2, 3}, 0, 0)};
  spec.vertices[1].alias = AliasKind::kView;
  spec.vertices[1].collective = true;
  spec.vertices[1].forward_time = Nanos(70);
  const Schedule schedule = {ForwardSave(1), Communicating(ForwardSave(2)),
                             ForwardSave(3), ForwardSave(4),
                             Backward(4),    Backward(3),
                             Backward(2),    Backward(1)};
  Timeline t;
  ASSERT_TRUE(Evaluator(*Graph::Create(spec)).Run(schedule, &t).ok());
  EXPECT_EQ(t[2].start, Nanos(10));
  EXPECT_EQ(t[3].start, Nanos(80));
}

TEST(Communication, HoldsUpReadersOfWhatItWritesOver) {
  GraphSpec spec;
  spec.vertices = {Op(1, {}, 1, 0), Op(2, {1}, 10, 0), Op(3, {1}, 1, 0), Op(4, {2, 3}, 0, 0)};
  spec.vertices[2].alias = AliasKind::kInPlace;
  spec.vertices[2].collective = true;
  spec.vertices[2].forward_time = Nanos(70);
  const Schedule schedule = {ForwardSave(1),
                             ForwardSave(2),
                             Communicating(ForwardSave(3)),
                             OffloadStart(kActivation, 2),
                             OffloadStart(kActivation, 1),
                             ForwardSave(4),
                             OffloadWait(kActivation, 2),
                             OffloadWait(kActivation, 1),
                             Backward(4),
                             Backward(3),
                             Backward(2),
                             Backward(1)};
  Timeline t;
  ASSERT_TRUE(Evaluator(Instance(*Graph::Create(spec), DigitsLink())).Run(schedule, &t).ok());
  EXPECT_EQ(t[3].start, Nanos(20));
  EXPECT_EQ(t[4].start, Nanos(90));
  EXPECT_EQ(t[5].start, Nanos(90));
}

// A second run for the extras leaves the output alone, and 3 reads only that.
TEST(Communication, DoesNotHoldUpARenewalOfExtras) {
  GraphSpec spec;
  spec.vertices = {Op(1, {}, 1, 0), Op(2, {1}, 10, 0), Op(3, {2}, 0, 0)};
  spec.vertices[1].extra_saved = Bytes(100);
  spec.vertices[2].collective = true;
  const Schedule schedule = {ForwardSave(1), ForwardNoSave(2), Communicating(ForwardSave(3)),
                             ForwardSave(2), Backward(3),      Backward(2),
                             Backward(1)};
  Timeline t;
  ASSERT_TRUE(Evaluator(*Graph::Create(spec)).Run(schedule, &t).ok());
  EXPECT_EQ(t[2].start, Nanos(20));
  EXPECT_EQ(t[3].start, Nanos(20));
  EXPECT_EQ(t[3].running, Bytes(1 + 10 + 10 + 100));
}

TEST(Communication, RunsBesideCopies) {
  const Schedule forwards = {
      ForwardSave(1), Communicating(ForwardSave(2)),
      // Reading what 2 reads.
      OffloadStart(kActivation, 1), ForwardSave(3), OffloadStart(kActivation, 3), ForwardSave(4),
      // 4 has read 3, and 2 is not done with 1.
      OffloadWait(kActivation, 1), ForwardSave(5), OffloadWait(kActivation, 3)};
  Timeline t;
  const absl::StatusOr<Simulation> s =
      Evaluator(Instance(Branches(), DigitsLink())).Run(forwards + kBackwards, &t);
  ASSERT_TRUE(s.ok()) << s.status();
  EXPECT_EQ(t[1].end, Nanos(60));
  EXPECT_EQ(t[2].start, Nanos(10));
  EXPECT_EQ(t[2].end, Nanos(11));
  EXPECT_EQ(t[4].start, Nanos(20));
  EXPECT_EQ(t[4].end, Nanos(1020));
  EXPECT_EQ(t[6].start, Nanos(60));
  EXPECT_EQ(t[6].end, Nanos(60));
  EXPECT_EQ(t[6].held, Bytes(11110));
  EXPECT_EQ(t[7].end, Nanos(70));
  EXPECT_EQ(t[8].start, Nanos(70));
  EXPECT_EQ(t[8].end, Nanos(1020));
  EXPECT_EQ(s->idle_time, Nanos(30 + 950));
}

TEST(Communication, HoldsUpCopiesOfWhatItMakes) {
  const Schedule forwards = {ForwardSave(1),          Communicating(ForwardSave(2)),
                             OffloadStart(kSaved, 2), ForwardSave(3),
                             ForwardSave(4),          ForwardSave(5),
                             OffloadWait(kSaved, 2),  PrefetchStart(kSaved, 2),
                             PrefetchWait(kSaved, 2)};
  Timeline t;
  ASSERT_TRUE(Evaluator(Instance(Branches(), DigitsLink())).Run(forwards + kBackwards, &t).ok());
  EXPECT_EQ(t[2].start, Nanos(60));
  EXPECT_EQ(t[2].end, Nanos(160));
  EXPECT_EQ(t[2].held, Bytes(111));
  EXPECT_EQ(t[3].start, Nanos(60));
}

// A stage reads the one before it, so that copies alone can run beside it.
TEST(Communication, OnAChainLetsCopiesStartEarlier) {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage s;
  s.forward_time = Nanos(10);
  s.backward_time = Nanos(100);
  s.output = Bytes(10);
  s.saved = Bytes(200);
  s.forward_saving_overhead = Bytes(7000);
  spec.stages = {s, s};
  spec.stages[1].collective = true;
  spec.loss = s;
  const Chain chain = *Chain::Create(spec);
  const Schedule schedule = {ForwardSave(1),           Communicating(ForwardSave(2)),
                             OffloadStart(kSaved, 1),  ForwardSave(3),
                             OffloadWait(kSaved, 1),   Backward(3),
                             PrefetchStart(kSaved, 1), Communicating(Backward(2)),
                             PrefetchWait(kSaved, 1),  Backward(1)};
  EXPECT_THAT(
      std::string(Evaluator(Instance(chain, DigitsLink())).Run(schedule).status().message()),
      HasSubstr("instruction 7 (communication: backward 2): its input, activation 1, is "
                "not held"));
  Schedule in_time = schedule;
  std::swap(in_time[7], in_time[8]);
  Timeline t;
  const absl::StatusOr<Simulation> got = Evaluator(Instance(chain, DigitsLink())).Run(in_time, &t);
  ASSERT_TRUE(got.ok()) << got.status();
  ExpectTimeline(t, {{0, 10, 7201, 201},
                     {10, 20, 7401, 7401},
                     {10, 210, 7401, 7401},
                     {20, 30, 7601, 601},
                     {30, 210, 601, 401},
                     {210, 310, 401, 201},
                     {310, 710, 401, 401},
                     {310, 710, 401, 401},
                     {710, 810, 401, 401},
                     {810, 910, 201, 0}});
  EXPECT_EQ(got->makespan, Nanos(910));
  EXPECT_EQ(got->idle_time, Nanos(10 + 180 + 400 + 100));
}

}  // namespace
}  // namespace stowage
