#include "solvers/plan/schedule.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

TEST(Schedule, SaysWhatAnInstructionDoes) {
  EXPECT_EQ(ToString(ForwardKeepAll(3)), "forward-keep-all 3");
  EXPECT_EQ(ToString(Backward(1)), "backward 1");
  EXPECT_EQ(ToString(Discard(TensorKind::kSaved, 2)), "discard saved 2");
  EXPECT_EQ(ToString(Discard(TensorKind::kActivation, 0)), "discard activation 0");
  EXPECT_EQ(ToString(Reduce(2)), "reduce saved 2");
}

TEST(Schedule, OnlyStartsOfCopiesRunBesideCompute) {
  for (int op = 0; op <= static_cast<int>(Op::kPrefetchWait); ++op) {
    const bool transfer = op >= static_cast<int>(Op::kOffloadStart);
    EXPECT_EQ(IsTransfer(static_cast<Op>(op)), transfer);
    const Stream stream = StreamOf(static_cast<Op>(op));
    if (op == static_cast<int>(Op::kOffloadStart)) {
      EXPECT_EQ(stream, Stream::kToHost);
    } else if (op == static_cast<int>(Op::kPrefetchStart)) {
      EXPECT_EQ(stream, Stream::kToDevice);
    } else {
      EXPECT_EQ(stream, Stream::kCompute);
    }
  }
  for (const Instruction& i :
       {OffloadStart(TensorKind::kSaved, 4), OffloadWait(TensorKind::kSaved, 4),
        PrefetchStart(TensorKind::kSaved, 4), PrefetchWait(TensorKind::kSaved, 4)}) {
    EXPECT_EQ(i.stream, StreamOf(i.op));
    EXPECT_EQ(ToString(i), std::string(ToString(i.op)) + " saved 4");
  }
}

TEST(Schedule, DigestTellsSchedulesApart) {
  const Schedule base = {ForwardKeepAll(1), Backward(1)};
  Schedule other_op = base, other_stage = base, other_stream = base;
  other_op[0].op = Op::kForwardKeepInput;
  other_stage[0].stage = 2;
  other_stream[0].stream = Stream::kCommunication;
  EXPECT_EQ(ScheduleDigest(base), ScheduleDigest(Schedule(base)));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest(other_op));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest(other_stage));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest(other_stream));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest({}));
  EXPECT_NE(ScheduleDigest({Discard(TensorKind::kSaved, 1)}),
            ScheduleDigest({Discard(TensorKind::kActivation, 1)}));
}

// Golden: ranks of one job compare digests across builds.
TEST(Schedule, DigestIsStable) {
  EXPECT_EQ(ScheduleDigest({ForwardKeepAll(1), Backward(1)}).ToHex(),
            "657bc505adf2257d7749d1ebdbf71e8453ce768a8c46b1e847618ca9aa79edcf");
}

}  // namespace
}  // namespace stowage
