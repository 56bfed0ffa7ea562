#include "solvers/schedule/schedule.h"

#include <gtest/gtest.h>

#include <random>

#include "solvers/schedule/instance.h"
#include "solvers/schedule/varint.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

constexpr int64_t kPlenty = 1 << 20;

TEST(ScheduleCode, GoldenBytes) {
  const Schedule schedule = {
      ForwardNoSave(1), ForwardNoSaveFreeInput(2),     ForwardNoSaveFreeInput(3), ForwardSave(4),
      Backward(4),      Discard(TensorKind::kSaved, 1)};
  const std::string expected("\x01\x02\x00\x02\x02\x01\x00\x02\x00\x03\x00\x00\x14\x05\x00", 15);
  EXPECT_EQ(EncodeSchedule(schedule), expected);
}

TEST(ScheduleCode, RoundTripsWhateverTheEvaluatorAllows) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 2000; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 9, {}, &rng);
    const Schedule schedule = testing::RandomSchedule(chain, &rng);
    const std::string code = EncodeSchedule(schedule);
    const absl::StatusOr<Schedule> back = DecodeSchedule(code, kPlenty);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, schedule);
  }
}

TEST(ScheduleCode, RoundTripsEveryStreamAndTensor) {
  Schedule schedule;
  for (int op = 0; op <= static_cast<int>(Op::kPrefetchWait); ++op) {
    for (const TensorKind tensor : {TensorKind::kActivation, TensorKind::kSaved}) {
      for (int stream = 0; stream < 4; ++stream) {
        schedule.push_back({static_cast<Op>(op), 1000 * op, tensor, static_cast<Stream>(stream)});
      }
    }
  }
  schedule.push_back(Backward(std::numeric_limits<int32_t>::max()));
  EXPECT_EQ(*DecodeSchedule(EncodeSchedule(schedule), kPlenty), schedule);
}

TEST(ScheduleCode, PartsStandBeforeTheirRuns) {
  const Schedule schedule = {
      OffloadStart(TensorKind::kSaved, 4, 2), OffloadWait(TensorKind::kSaved, 4, 2),
      OffloadWait(TensorKind::kSaved, 5, 2), OffloadWait(TensorKind::kSaved, 6, 300)};
  const std::string expected("\x0f\x02\x56\x08\x00\x0f\x02\x17\x00\x01\x0f\xac\x02\x17\x02\x00",
                             16);
  EXPECT_EQ(EncodeSchedule(schedule), expected);
  EXPECT_EQ(*DecodeSchedule(expected, kPlenty), schedule);
  const Schedule largest = {OffloadWait(TensorKind::kSaved, 1, 65535)};
  EXPECT_EQ(*DecodeSchedule(EncodeSchedule(largest), kPlenty), largest);
}

TEST(ScheduleCode, IsShortForLongChains) {
  ChainSpec spec;
  spec.stages.resize(1000);
  const Schedule schedule = StoreAllSchedule(*Chain::Create(spec));
  EXPECT_LE(EncodeSchedule(schedule).size(), 8u);
  EXPECT_EQ(*DecodeSchedule(EncodeSchedule(schedule), kPlenty), schedule);
}

TEST(ScheduleCode, RefusesWhatIsNoSchedule) {
  const auto decode = [](const std::string& code) { return DecodeSchedule(code, 100).status(); };
  EXPECT_TRUE(decode("").ok());
  EXPECT_FALSE(decode(std::string("\x00", 1)).ok());                          // cut short
  EXPECT_FALSE(decode(std::string("\x0f\x02\x00", 3)).ok());                  // no such op
  EXPECT_FALSE(decode(std::string("\x00\x01\x00", 3)).ok());                  // stage -1
  EXPECT_FALSE(decode(std::string("\x20\x02\x05", 3)).ok());                  // falls below stage 0
  EXPECT_FALSE(decode(std::string("\x00\x02\x64", 3)).ok());                  // 101 instructions
  EXPECT_FALSE(decode(std::string("\x00\x82\x00\x00", 4)).ok());              // a longer form of 2
  EXPECT_FALSE(decode(std::string("\x0f\x01", 2)).ok());                      // a part of what?
  EXPECT_FALSE(decode(std::string("\x0f\x00\x17\x02\x00", 5)).ok());          // part 0
  EXPECT_FALSE(decode(std::string("\x0f\x80\x80\x04\x17\x02\x00", 7)).ok());  // part 65536
  EXPECT_FALSE(decode(std::string("\x0f\x01\x0f\x01\x17\x02\x00", 7)).ok());  // two parts
  EXPECT_TRUE(decode(std::string("\x0f\x01\x17\x02\x00", 5)).ok());
  // One encoding per schedule: no run may go on in the next, or fall with one instruction.
  EXPECT_FALSE(decode(std::string("\x00\x02\x00\x00\x02\x00", 6)).ok());
  EXPECT_FALSE(decode(std::string("\x00\x02\x01\x00\x02\x00", 6)).ok());
  EXPECT_TRUE(decode(std::string("\x00\x02\x01\x00\x01\x00", 6)).ok());
  EXPECT_FALSE(decode(std::string("\x20\x02\x00", 3)).ok());
}

TEST(ScheduleCode, SurvivesArbitraryBytes) {
  std::mt19937_64 rng(2);
  int decoded = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string code(rng() % 12, '\0');
    for (char& c : code) c = static_cast<char>(rng() % (i % 2 == 0 ? 256 : 8));
    const absl::StatusOr<Schedule> schedule = DecodeSchedule(code, 1000);
    EXPECT_EQ(CheckScheduleCode(code, 1000).ok(), schedule.ok());
    if (!schedule.ok()) continue;
    ++decoded;
    EXPECT_LE(schedule->size(), 1000u);
    EXPECT_EQ(EncodeSchedule(*schedule), code);
  }
  EXPECT_GT(decoded, 1000);
}

TEST(Varint, RoundTripsTheRange) {
  for (const int64_t value :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{127}, int64_t{128},
        std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
    std::string bytes;
    AppendVarint(ZigZag(value), &bytes);
    VarintReader in(bytes);
    uint64_t back = 0;
    ASSERT_TRUE(in.Varint(&back));
    EXPECT_TRUE(in.done());
    EXPECT_EQ(UnZigZag(back), value);
  }
}

}  // namespace
}  // namespace stowage
