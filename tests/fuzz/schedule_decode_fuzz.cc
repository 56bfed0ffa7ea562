// Arbitrary bytes as an encoded schedule: refused, and by the check that takes no memory, too, or a
// schedule that encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "solvers/schedule/schedule.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  using testing::Require;
  constexpr int64_t kMost = 10000;
  const std::string code(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Schedule> schedule = DecodeSchedule(code, kMost);
  const absl::Status check = CheckScheduleCode(code, kMost);
  Require(schedule.status() == check, "the check says what decoding says", check.ToString());
  if (!schedule.ok()) {
    Require(absl::IsInvalidArgument(check), "bad bytes are bad arguments");
    return 0;
  }
  const auto instructions = static_cast<int64_t>(schedule->size());
  Require(instructions <= kMost, "the limit holds");
  Require(EncodeSchedule(*schedule) == code, "a schedule has one encoding");
  if (instructions > 0) {
    Require(!DecodeSchedule(code, instructions - 1).ok(), "the limit holds to the instruction");
  }
  return 0;
}
