#include "solvers/schedule/measured_step.h"

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

using Lines = std::vector<absl::string_view>;

constexpr char kFormat[] = "stowage-measured-step 2";
constexpr size_t kHeadLines = 5;
constexpr size_t kMostShown = 80;

absl::Status LineError(size_t line, absl::string_view text, const std::string& rule) {
  return FieldError(absl::StrCat("line ", line + 1), std::string(text.substr(0, kMostShown)), rule);
}

// As StrCat writes it, in [0, limit).
std::optional<int64_t> ReadNumber(absl::string_view word, int64_t limit) {
  int64_t value = 0;
  const bool read = absl::SimpleAtoi(word, &value) && value >= 0 && value < limit;
  if (!read || word != absl::StrCat(value)) return std::nullopt;
  return value;
}

// What follows `label` and a space.
absl::StatusOr<absl::string_view> ReadLabelled(const Lines& lines, size_t line,
                                               const std::string& label) {
  const absl::string_view text = lines[line];
  if (text.substr(0, label.size() + 1) == label + " ") return text.substr(label.size() + 1);
  return LineError(line, text, absl::StrCat("must be '", label, "' and a value"));
}

absl::StatusOr<int64_t> ReadHead(const Lines& lines, size_t line, const std::string& label,
                                 int64_t limit) {
  const absl::StatusOr<absl::string_view> value = ReadLabelled(lines, line, label);
  if (!value.ok()) return value.status();
  const std::optional<int64_t> number = ReadNumber(*value, limit);
  if (number) return *number;
  return LineError(line, *value, absl::StrCat("must be a number in [0, ", limit, ")"));
}

// Not before `from`.
absl::StatusOr<MeasuredInstruction> ReadInstruction(const Lines& lines, size_t line, Nanos from) {
  const Lines words = absl::StrSplit(lines[line], ' ');
  if (words.size() == 4) {
    const std::optional<int64_t> start = ReadNumber(words[0], kMaxTimeTotal);
    const std::optional<int64_t> end = ReadNumber(words[1], kMaxTimeTotal);
    const std::optional<int64_t> peak = ReadNumber(words[2], kMaxTotal);
    const std::optional<int64_t> held = ReadNumber(words[3], kMaxTotal);
    const bool ordered = start && end && from.value() <= *start && *start <= *end;
    if (ordered && peak && held && *held <= *peak) {
      return MeasuredInstruction{Nanos(*start), Nanos(*end), Bytes(*peak), Bytes(*held)};
    }
  }
  return LineError(
      line, lines[line],
      absl::StrCat("must be start, end, peak and what is held, none negative, start >= ",
                   from.value(), ", end >= start, peak >= held"));
}

}  // namespace

absl::Status CheckMeasuredStep(const MeasuredStep& step, const Schedule& schedule) {
  if (step.schedule != ScheduleDigest(schedule)) {
    return FieldError("schedule", step.schedule.ToHex(), "must be the digest of the schedule");
  }
  if (step.instructions.size() == schedule.size()) return absl::OkStatus();
  return FieldError("instructions", static_cast<int64_t>(step.instructions.size()),
                    absl::StrCat("must be those of the schedule, ", schedule.size()));
}

std::string MeasuredStepText(const MeasuredStep& step) {
  std::string text = absl::StrCat(kFormat, "\nschedule ", step.schedule.ToHex(), "\npeak_bytes ",
                                  step.peak.value(), "\nstep_time_ns ", step.step_time.value(),
                                  "\ninstructions ", step.instructions.size(), "\n");
  for (const MeasuredInstruction& i : step.instructions) {
    absl::StrAppend(&text, i.start.value(), " ", i.end.value(), " ", i.peak.value(), " ",
                    i.held_after.value(), "\n");
  }
  return text;
}

absl::StatusOr<MeasuredStep> ParseMeasuredStep(const std::string& text) {
  Lines lines = absl::StrSplit(text, '\n');
  if (lines[0] != kFormat) {
    return LineError(0, lines[0], absl::StrCat("must be '", kFormat, "'"));
  }
  if (lines.size() <= kHeadLines || !lines.back().empty()) {
    return LineError(lines.size() - 1, lines.back(), "must be whole, and not the last one");
  }
  lines.pop_back();
  const absl::StatusOr<absl::string_view> schedule = ReadLabelled(lines, 1, "schedule");
  if (!schedule.ok()) return schedule.status();
  const std::optional<Digest> digest = DigestFromHex(std::string(*schedule));
  if (!digest) return LineError(1, *schedule, "must be 64 hexadecimal digits");
  const absl::StatusOr<int64_t> peak = ReadHead(lines, 2, "peak_bytes", kMaxTotal);
  if (!peak.ok()) return peak.status();
  const absl::StatusOr<int64_t> time = ReadHead(lines, 3, "step_time_ns", kMaxTimeTotal);
  if (!time.ok()) return time.status();
  const absl::StatusOr<int64_t> count = ReadHead(lines, 4, "instructions", kMaxTotal);
  if (!count.ok()) return count.status();
  const size_t follow = lines.size() - kHeadLines;
  if (static_cast<size_t>(*count) != follow) {
    return LineError(4, absl::StrCat(*count),
                     absl::StrCat("must be as many as there are lines after it, ", follow));
  }
  MeasuredStep step{*digest, {}, Bytes(*peak), Nanos(*time)};
  step.instructions.reserve(follow);
  Nanos from;
  for (size_t line = kHeadLines; line < lines.size(); ++line) {
    absl::StatusOr<MeasuredInstruction> instruction = ReadInstruction(lines, line, from);
    if (!instruction.ok()) return instruction.status();
    from = instruction->end;
    step.instructions.push_back(*instruction);
  }
  return step;
}

}  // namespace stowage
