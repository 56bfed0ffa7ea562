#include "solvers/base/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <random>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// "00-" trace id "-" span id "-" flags.
constexpr size_t kTraceIdAt = 3;
constexpr size_t kSpanIdAt = 36;
constexpr size_t kFlagsAt = 53;
constexpr size_t kLength = 55;
constexpr uint8_t kSampledFlag = 1;

// Small letters alone, as W3C has it.
std::optional<uint8_t> HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return static_cast<uint8_t>(digit - '0');
  if (digit >= 'a' && digit <= 'f') return static_cast<uint8_t>(digit - 'a' + 10);
  return std::nullopt;
}

template <size_t kBytes>
bool ReadHex(std::string_view digits, std::array<uint8_t, kBytes>* bytes) {
  for (size_t i = 0; i < kBytes; ++i) {
    const std::optional<uint8_t> high = HexDigit(digits[2 * i]);
    const std::optional<uint8_t> low = HexDigit(digits[2 * i + 1]);
    if (!high || !low) return false;
    (*bytes)[i] = static_cast<uint8_t>(*high << 4 | *low);
  }
  return true;
}

template <size_t kBytes>
std::string HexOf(const std::array<uint8_t, kBytes>& bytes) {
  std::string digits;
  for (const uint8_t byte : bytes) absl::StrAppend(&digits, absl::Hex(byte, absl::kZeroPad2));
  return digits;
}

template <size_t kBytes>
bool IsZero(const std::array<uint8_t, kBytes>& bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

template <size_t kBytes>
std::array<uint8_t, kBytes> Draw() {
  thread_local std::mt19937_64 random{std::random_device()() ^
                                      (uint64_t{std::random_device()()} << 32)};
  std::array<uint8_t, kBytes> bytes;
  do {
    for (size_t i = 0; i < kBytes; i += 8) {
      const uint64_t drawn = random();
      for (size_t j = 0; j < 8; ++j) bytes[i + j] = static_cast<uint8_t>(drawn >> (8 * j));
    }
  } while (IsZero(bytes));
  return bytes;
}

}  // namespace

bool operator==(const TraceContext& a, const TraceContext& b) {
  return a.trace_id == b.trace_id && a.span_id == b.span_id && a.sampled == b.sampled;
}

std::optional<TraceContext> ParseTraceparent(std::string_view text) {
  if (text.size() < kLength || text[2] != '-' || text[kSpanIdAt - 1] != '-' ||
      text[kFlagsAt - 1] != '-') {
    return std::nullopt;
  }
  std::array<uint8_t, 1> version{}, flags{};
  TraceContext context;
  if (!ReadHex(text, &version) || !ReadHex(text.substr(kTraceIdAt), &context.trace_id) ||
      !ReadHex(text.substr(kSpanIdAt), &context.span_id) ||
      !ReadHex(text.substr(kFlagsAt), &flags)) {
    return std::nullopt;
  }
  if (version[0] == 0xff || IsZero(context.trace_id) || IsZero(context.span_id)) {
    return std::nullopt;
  }
  // Later versions may say more, behind a dash.
  const bool longer = text.size() > kLength;
  if (longer && (version[0] == 0 || text[kLength] != '-')) return std::nullopt;
  context.sampled = (flags[0] & kSampledFlag) != 0;
  return context;
}

std::string FormatTraceparent(const TraceContext& context) {
  return absl::StrCat("00-", HexOf(context.trace_id), "-", HexOf(context.span_id), "-",
                      context.sampled ? "01" : "00");
}

std::string ToHex(const TraceId& id) { return HexOf(id); }

TraceId NewTraceId() { return Draw<16>(); }
SpanId NewSpanId() { return Draw<8>(); }

bool IsSampled(const TraceId& id, double share) {
  // The last seven bytes are the random ones, by W3C's level 2.
  uint64_t drawn = 0;
  for (size_t i = 9; i < id.size(); ++i) drawn = drawn << 8 | id[i];
  // As many of their bits as a double has.
  constexpr int kBits = 53;
  return static_cast<double>(drawn >> (56 - kBits)) <
         share * static_cast<double>(uint64_t{1} << kBits);
}

}  // namespace stowage
