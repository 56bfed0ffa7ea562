#include "solvers/schedule/measured_step.h"

#include <gtest/gtest.h>

#include <string>

#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

Schedule TwoStages() { return {ForwardSave(1), ForwardSave(2), Backward(2), Backward(1)}; }

MeasuredStep Measured() {
  MeasuredStep step;
  step.schedule = ScheduleDigest(TwoStages());
  step.instructions = {
      {Nanos(0), Nanos(5), Bytes(800), Bytes(300)},
      {Nanos(5), Nanos(5), Bytes(700), Bytes(700)},
      {Nanos(7), Nanos(20), Bytes(900), Bytes(0)},
      {Nanos(20), Nanos(kMaxTimeTotal - 1), Bytes(kMaxTotal - 1), Bytes(kMaxTotal - 1)}};
  step.peak = Bytes(900);
  step.step_time = Nanos(31);
  return step;
}

// The text with the first `from` in it replaced.
std::string With(const std::string& from, const std::string& to) {
  std::string text = MeasuredStepText(Measured());
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

void ExpectRefused(const std::string& text, const std::string& line) {
  const absl::Status status = ParseMeasuredStep(text).status();
  const std::optional<FieldViolation> violation = GetFieldViolation(status);
  ASSERT_TRUE(violation) << status << "\n" << text;
  EXPECT_EQ(violation->field, line) << status;
}

TEST(MeasuredStep, IsReadAsItWasWritten) {
  const absl::StatusOr<MeasuredStep> read = ParseMeasuredStep(MeasuredStepText(Measured()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Measured());
  const absl::StatusOr<MeasuredStep> empty = ParseMeasuredStep(MeasuredStepText({}));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(*empty, MeasuredStep());
}

TEST(MeasuredStep, SaysInItsTextWhatItIs) {
  EXPECT_EQ(MeasuredStepText(Measured()),
            "stowage-measured-step 2\nschedule " + ScheduleDigest(TwoStages()).ToHex() +
                "\npeak_bytes 900\nstep_time_ns 31\ninstructions 4\n0 5 800 300\n5 5 700 700\n7 20 "
                "900 0\n"
                "20 2305843009213693951 4611686018427387903 4611686018427387903\n");
}

TEST(MeasuredStep, RefusesWhatIsNotOne) {
  ExpectRefused("", "line 1");
  ExpectRefused(With("step 2", "step 1"), "line 1");
  ExpectRefused("stowage-measured-step 2", "line 1");
  ExpectRefused(With("schedule ", "schedule  "), "line 2");
  ExpectRefused(With("schedule", "plan"), "line 2");
  ExpectRefused(With("peak_bytes 9", "peak_bytes -9"), "line 3");
  ExpectRefused(With("peak_bytes 9", "peak_bytes 09"), "line 3");
  ExpectRefused(With("step_time_ns 31", "step_time_ns 31 "), "line 4");
  ExpectRefused(With("step_time_ns 31", "step_time_ns 2305843009213693952"), "line 4");
  ExpectRefused(With("instructions 4", "instructions 5"), "line 5");
  ExpectRefused(With("instructions 4", "instructions 3"), "line 5");
  ExpectRefused(With("0 5 800 300", "0 5"), "line 6");
  ExpectRefused(With("0 5 800 300", "0 5 300"), "line 6");
  ExpectRefused(With("0 5 800 300", "0 5 800 300 1"), "line 6");
  ExpectRefused(With("0 5 800 300", "0 +5 800 300"), "line 6");
  ExpectRefused(With("0 5 800 300", "0 5 800 300\r"), "line 6");
  ExpectRefused(With("0 5 800 300", "6 5 800 300"), "line 6");
  ExpectRefused(With("0 5 800 300", "0 5 299 300"), "line 6");
  ExpectRefused(With("5 5 700", "4 5 700"), "line 7");
  ExpectRefused(With("7 20 900 0\n", "7 20 900 0\n\n"), "line 5");
  std::string cut = MeasuredStepText(Measured());
  cut.pop_back();
  ExpectRefused(cut, "line 9");
}

TEST(MeasuredStep, IsOfOneSchedule) {
  EXPECT_TRUE(CheckMeasuredStep(Measured(), TwoStages()).ok());
  Schedule other = TwoStages();
  other[0] = ForwardNoSave(1);
  EXPECT_EQ(GetFieldViolation(CheckMeasuredStep(Measured(), other))->field, "schedule");
  MeasuredStep less = Measured();
  less.instructions.pop_back();
  EXPECT_EQ(GetFieldViolation(CheckMeasuredStep(less, TwoStages()))->field, "instructions");
}

TEST(DigestText, IsWhatToHexWrites) {
  const Digest digest = Sha256("abc");
  EXPECT_EQ(DigestFromHex(digest.ToHex()), digest);
  std::string hex = digest.ToHex();
  EXPECT_FALSE(DigestFromHex(hex + "0"));
  EXPECT_FALSE(DigestFromHex(hex.substr(2)));
  hex[0] = 'B';
  EXPECT_FALSE(DigestFromHex(hex));
  hex[0] = 'g';
  EXPECT_FALSE(DigestFromHex(hex));
}

}  // namespace
}  // namespace stowage
