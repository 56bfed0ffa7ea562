#include "client/torch/memory/memory_refusal.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace stowage {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kOneMiB = 1024 * kKiB;
constexpr int64_t kGiB = 1024 * kOneMiB;

// One that was reset when a step began.
class Meter : public MemoryMeter {
 public:
  Meter(Bytes peak, Bytes reserved) : peak_(peak), reserved_(reserved) {}
  Bytes current() const override { return Bytes(0); }
  Bytes peak() const override { return peak_; }
  void ResetPeak() override {}
  Bytes peak_reserved() const override { return reserved_; }

 private:
  const Bytes peak_, reserved_;
};

TEST(MemoryRefusal, ReadsWhatTheCudaAllocatorOf1_13Says) {
  const auto refusal = ReadMemoryRefusal(
      "CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 10.76 GiB total capacity; 8.50 GiB "
      "already allocated; 512.00 MiB free; 9.00 GiB reserved in total by PyTorch) If reserved "
      "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->asked, Bytes(5 * kGiB / 2));
  EXPECT_EQ(refusal->allocated, Bytes(17 * kGiB / 2));
  EXPECT_EQ(refusal->reserved, Bytes(9 * kGiB));
  // What others have is not there.
  EXPECT_EQ(refusal->limit, Bytes(9 * kGiB + 512 * kOneMiB));
  EXPECT_GE(refusal->rounding.value() * 1000, 15 * kGiB);
  EXPECT_LT(refusal->rounding.value() * 1000, 16 * kGiB);
}

TEST(MemoryRefusal, ReadsWhatTheCudaAllocatorOf2_11Says) {
  const std::string words =
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 79.15 GiB of "
      "which 5.00 MiB is free. Process 7 has 1.00 GiB memory in use. Including non-PyTorch memory, "
      "this process has 78.00 GiB memory in use. Of the allocated memory 70.25 GiB is allocated by "
      "PyTorch, with 1.00 GiB allocated in private pools (e.g., CUDA Graphs), and 256.00 MiB is "
      "reserved by PyTorch but unallocated. If reserved but unallocated memory is large";
  const auto refusal = ReadMemoryRefusal(words);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->asked, Bytes(20 * kOneMiB));
  EXPECT_EQ(refusal->allocated, Bytes(281 * kGiB / 4));
  EXPECT_EQ(refusal->reserved, Bytes(141 * kGiB / 2));
  EXPECT_EQ(refusal->limit, refusal->reserved + Bytes(5 * kOneMiB));
  std::string share = words;
  share.insert(share.find("Of the allocated"), "70.25 GiB allowed; ");
  EXPECT_EQ(ReadMemoryRefusal(share)->limit, Bytes(281 * kGiB / 4));
}

TEST(MemoryRefusal, NothingMayBeFree) {
  const auto refusal = ReadMemoryRefusal(
      "CUDA out of memory. Tried to allocate 512 bytes. GPU 0 has a total capacity of 8.00 GiB of "
      "which 0 bytes is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 0 "
      "bytes "
      "is reserved by PyTorch but unallocated.");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->asked, Bytes(512));
  EXPECT_EQ(refusal->limit, Bytes(kGiB));
}

TEST(MemoryRefusal, SaysNothingOfOtherWords) {
  EXPECT_FALSE(ReadMemoryRefusal(""));
  EXPECT_FALSE(ReadMemoryRefusal("out of memory: 7 bytes asked for"));
  EXPECT_FALSE(ReadMemoryRefusal("Tried to allocate 2.50 GiB"));
  EXPECT_FALSE(
      ReadMemoryRefusal("Tried to allocate x GiB (1 MiB already allocated; 1 MiB free; 1 "
                        "MiB reserved in total)"));
  EXPECT_FALSE(ReadMemoryRefusal(" already allocated free reserved in total Tried to allocate "));
}

TEST(MemoryRefusal, WordsAreReadBackWithinTheirRounding) {
  for (const int64_t unit : {int64_t{1}, kKiB, kOneMiB, 700 * kOneMiB}) {
    const Bytes asked(unit + unit / 3), allocated(2 * unit + unit / 7), limit(4 * unit);
    const Bytes reserved = allocated + Bytes(unit / 11);
    const auto read =
        ReadMemoryRefusal(WordsOfRefusal({asked, allocated, reserved, limit, Bytes(0)}));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->rounding == Bytes(0), unit == 1);
    const auto near = [&read](Bytes a, Bytes b) {
      return a <= b + read->rounding && b <= a + read->rounding;
    };
    EXPECT_TRUE(near(read->asked, asked));
    EXPECT_TRUE(near(read->allocated, allocated));
    EXPECT_TRUE(near(read->reserved, reserved));
    EXPECT_TRUE(near(read->limit, limit));
    EXPECT_LE(read->rounding.value(), unit / 10);
  }
}

TEST(MemoryRefusal, IsExactWhereNeverMoreWasLive) {
  const Bytes allocated(5 * kOneMiB + 77), reserved(6 * kOneMiB + 3);
  const auto read = ReadMemoryRefusal(
      WordsOfRefusal({Bytes(20 * kOneMiB), allocated, reserved, Bytes(8 * kOneMiB), Bytes(0)}));
  ASSERT_TRUE(read);
  EXPECT_NE(read->allocated, allocated);
  const MemoryRefusal exact = read->ExactBy(Meter(allocated, reserved));
  EXPECT_EQ(exact.allocated, allocated);
  EXPECT_EQ(exact.reserved, reserved);
  // The peak was another instant's.
  const MemoryRefusal said = read->ExactBy(Meter(Bytes(7 * kOneMiB), Bytes(7 * kOneMiB)));
  EXPECT_EQ(said.allocated, read->allocated);
  EXPECT_EQ(said.reserved, read->reserved);
  // A region that is live to the allocator, and not to the step.
  EXPECT_EQ(read->ExactBy(Meter(Bytes(kOneMiB), reserved)).allocated, Bytes(kOneMiB));
}

TEST(MemoryRefusal, WhatWasAskedForIsReadAlone) {
  EXPECT_EQ(AskedIn("CUDA out of memory. Tried to allocate 2.50 GiB (GPU 0; 79.15 GiB total"),
            Bytes(5 * kGiB / 2));
  EXPECT_EQ(AskedIn("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity"),
            Bytes(20 * kOneMiB));
  EXPECT_EQ(AskedIn("Tried to allocate 512 bytes (GPU 0)"), Bytes(512));
  EXPECT_EQ(AskedIn("Tried to allocate"), Bytes(0));
  EXPECT_EQ(AskedIn("Tried to allocate much (GPU 0)"), Bytes(0));
  EXPECT_EQ(AskedIn("out of memory: 7 bytes asked for"), Bytes(0));
}

MemoryRefusal AskedFor(Bytes asked) { return {asked, Bytes(0), Bytes(0), Bytes(0), Bytes(0)}; }

class LoggingMeter final : public MemoryMeter {
 public:
  Bytes current() const override { return Bytes(0); }
  Bytes peak() const override { return Bytes(0); }
  void ResetPeak() override {}
  RefusalLog* refusals() override { return &log; }

  RefusalLog log;
};

TEST(RefusalLog, WhoWatchesIsToldWhatSomebodyElseTook) {
  LoggingMeter meter;
  EXPECT_FALSE(meter.log.Take());
  meter.log.Note(AskedFor(Bytes(1)));
  const RefusalWatch watch(&meter);
  EXPECT_FALSE(watch.Last());
  meter.log.Note(AskedFor(Bytes(2)));
  meter.log.Note(AskedFor(Bytes(3)));
  EXPECT_EQ(meter.log.Take()->asked, Bytes(3));
  EXPECT_FALSE(meter.log.Take());
  EXPECT_EQ(watch.Last()->asked, Bytes(3));
  EXPECT_EQ(meter.log.count(), 3);
  meter.log.Note(AskedFor(Bytes(4)));
  EXPECT_EQ(meter.log.Take()->asked, Bytes(4));
  EXPECT_FALSE(RefusalWatch(&meter).Last());
}

TEST(RefusalLog, AMeterThatTellsNothingIsWatchedInVain) {
  Meter meter(Bytes(1), Bytes(1));
  EXPECT_FALSE(RefusalWatch(&meter).Last());
}

}  // namespace
}  // namespace stowage
