#include "solvers/schedule/schedule.h"

#include <gtest/gtest.h>

namespace stowage {
namespace {

TEST(Schedule, SaysWhatAnInstructionDoes) {
  EXPECT_EQ(ToString(ForwardSave(3)), "forward-save 3");
  EXPECT_EQ(ToString(Backward(1)), "backward 1");
  EXPECT_EQ(ToString(Discard(TensorKind::kSaved, 2)), "discard saved 2");
  EXPECT_EQ(ToString(Discard(TensorKind::kActivation, 0)), "discard activation 0");
  EXPECT_EQ(ToString(DropSavedKeepOutput(2)), "drop-saved-keep-output 2");
  EXPECT_EQ(ToString(OffloadWait(TensorKind::kSaved, 2, 5)), "offload-wait saved 2 part 5");
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
  const Schedule base = {ForwardSave(1), Backward(1)};
  Schedule other_op = base, other_stage = base, other_stream = base;
  other_op[0].op = Op::kForwardNoSave;
  other_stage[0].stage = 2;
  other_stream[0].stream = Stream::kCommunication;
  EXPECT_EQ(ScheduleDigest(base), ScheduleDigest(Schedule(base)));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest(other_op));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest(other_stage));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest(other_stream));
  EXPECT_NE(ScheduleDigest(base), ScheduleDigest({}));
  EXPECT_NE(ScheduleDigest({OffloadWait(TensorKind::kSaved, 1, 1)}),
            ScheduleDigest({OffloadWait(TensorKind::kSaved, 1)}));
  EXPECT_NE(ScheduleDigest({OffloadWait(TensorKind::kSaved, 1, 1)}),
            ScheduleDigest({OffloadWait(TensorKind::kSaved, 1, 2)}));
  EXPECT_NE(ScheduleDigest({Discard(TensorKind::kSaved, 1)}),
            ScheduleDigest({Discard(TensorKind::kActivation, 1)}));
}

TEST(Schedule, InstructionsAreSmall) { EXPECT_LE(sizeof(Instruction), 12u); }

// Golden: ranks of one job compare digests across builds.
TEST(Schedule, DigestIsStable) {
  EXPECT_EQ(ScheduleDigest({ForwardSave(1), Backward(1)}).ToHex(),
            "657bc505adf2257d7749d1ebdbf71e8453ce768a8c46b1e847618ca9aa79edcf");
  EXPECT_EQ(ScheduleDigest({OffloadStart(TensorKind::kSaved, 3, 2)}).ToHex(),
            "895bb17f20a097faea9cc327ca0f813f31b56d9f25ac50aaa8a9f2dad61a8e80");
  EXPECT_EQ(ScheduleDigest({OffloadStart(TensorKind::kSaved, 3)}).ToHex(),
            "725f653a732a27de2610a31d057e5e6273006ac7144641e14cfc4908cfa45ddd");
}

}  // namespace
}  // namespace stowage
