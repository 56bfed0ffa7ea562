#include "solvers/plan/schedule_code.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "solvers/plan/varint.h"

namespace stowage {
namespace {

constexpr int64_t kMaxStage = std::numeric_limits<int32_t>::max();

bool Alike(const Instruction& a, const Instruction& b) {
  return a.op == b.op && a.tensor == b.tensor && a.stream == b.stream;
}

uint8_t Head(const Instruction& i, bool falls) {
  return static_cast<uint8_t>(static_cast<uint32_t>(i.op) | static_cast<uint32_t>(i.tensor) << 4 |
                              (falls ? 1u << 5 : 0u) | static_cast<uint32_t>(i.stream) << 6);
}

// The instruction that a head describes, of stage 0; false if no op has that number.
bool FromHead(uint8_t head, Instruction* instruction) {
  const int op = head & 15;
  if (op > static_cast<int>(Op::kPrefetchWait)) return false;
  instruction->op = static_cast<Op>(op);
  instruction->tensor = static_cast<TensorKind>(head >> 4 & 1);
  instruction->stream = static_cast<Stream>(head >> 6);
  return true;
}

absl::Status Malformed(size_t instructions) {
  return absl::InvalidArgumentError(
      absl::StrCat("the encoded schedule is malformed after ", instructions, " instructions"));
}

}  // namespace

std::string EncodeSchedule(const Schedule& schedule) {
  std::string code;
  int64_t previous = 0;
  for (size_t first = 0; first < schedule.size();) {
    size_t end = first + 1;
    int step = 0;
    for (; end < schedule.size() && Alike(schedule[first], schedule[end]); ++end) {
      const int64_t change = int64_t{schedule[end].stage} - schedule[end - 1].stage;
      if ((change != 1 && change != -1) || (step != 0 && change != step)) break;
      step = static_cast<int>(change);
    }
    code.push_back(static_cast<char>(Head(schedule[first], step < 0)));
    AppendVarint(ZigZag(schedule[first].stage - previous), &code);
    AppendVarint(end - first - 1, &code);
    previous = schedule[end - 1].stage;
    first = end;
  }
  return code;
}

absl::StatusOr<Schedule> DecodeSchedule(const std::string& code, int64_t max_instructions) {
  Schedule schedule;
  VarintReader in(code);
  int64_t previous = 0;
  while (!in.done()) {
    uint8_t head = 0;
    uint64_t difference = 0;
    int64_t more = 0;
    Instruction instruction;
    const int64_t room = max_instructions - static_cast<int64_t>(schedule.size()) - 1;
    if (!in.Byte(&head) || !FromHead(head, &instruction) || !in.Varint(&difference) ||
        difference > uint64_t{4} * kMaxStage || !in.Count(room, &more)) {
      return Malformed(schedule.size());
    }
    const int64_t step = (head >> 5 & 1) != 0 ? -1 : 1;
    const int64_t first = previous + UnZigZag(difference);
    const int64_t last = first + step * more;
    if (first < 0 || last < 0 || first > kMaxStage || last > kMaxStage) {
      return Malformed(schedule.size());
    }
    for (int64_t stage = first;; stage += step) {
      instruction.stage = static_cast<int32_t>(stage);
      schedule.push_back(instruction);
      if (stage == last) break;
    }
    previous = last;
  }
  return schedule;
}

}  // namespace stowage
