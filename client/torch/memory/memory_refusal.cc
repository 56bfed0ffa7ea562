#include "client/torch/memory/memory_refusal.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "solvers/model/budget.h"

namespace stowage {
namespace {

constexpr char kAsked[] = "Tried to allocate ";

// Half of the last digit of "2.50", in its unit.
constexpr double kHalfDigit = 0.005;

struct Size {
  Bytes bytes;
  Bytes rounding;
};

// "2.50", "GiB": what follows the unit is not looked at.
std::optional<Size> ReadSize(const std::string& number, const std::string& word) {
  const std::string unit = word.substr(0, word.find_first_not_of("KMGTiBbytes"));
  if (unit == "bytes" || unit == "B") {
    int64_t bytes = 0;
    if (!absl::SimpleAtoi(number, &bytes) || bytes < 0) return std::nullopt;
    return Size{Bytes(bytes), Bytes(0)};
  }
  const absl::StatusOr<Budget> size = ParseBudget(absl::StrCat(number, " ", unit));
  if (!size.ok() || !std::holds_alternative<Bytes>(*size)) return std::nullopt;
  const absl::StatusOr<Budget> one = ParseBudget(absl::StrCat("1 ", unit));
  if (!one.ok()) return std::nullopt;
  const auto off = static_cast<double>(std::get<Bytes>(*one).value()) * kHalfDigit;
  return Size{std::get<Bytes>(*size), Bytes(static_cast<int64_t>(std::ceil(off)))};
}

std::optional<Size> SizeAfter(const std::string& words, const std::string& what) {
  const size_t at = words.find(what);
  if (at == std::string::npos) return std::nullopt;
  const std::vector<std::string> parts =
      absl::StrSplit(words.substr(at + what.size()), absl::MaxSplits(' ', 2));
  if (parts.size() < 2) return std::nullopt;
  return ReadSize(parts[0], parts[1]);
}

std::optional<Size> SizeBefore(const std::string& words, const std::string& what) {
  const size_t end = words.find(what);
  if (end == std::string::npos) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(words.substr(0, end), ' ');
  if (parts.size() < 2) return std::nullopt;
  return ReadSize(parts[parts.size() - 2], parts.back());
}

// Whichever form is there.
std::optional<Size> SizeBeforeOneOf(const std::string& words, const char* one, const char* other) {
  const std::optional<Size> size = SizeBefore(words, one);
  return size ? size : SizeBefore(words, other);
}

// `most` unless it is surely less.
Bytes UpTo(Bytes most, Bytes said, Bytes rounding) { return said + rounding >= most ? most : said; }

}  // namespace

MemoryRefusal MemoryRefusal::ExactBy(const MemoryMeter& meter) const {
  MemoryRefusal exact = *this;
  exact.allocated = UpTo(meter.peak(), allocated, rounding);
  exact.reserved = UpTo(meter.peak_reserved(), reserved, rounding);
  exact.reserved = std::max(exact.reserved, exact.allocated);
  return exact;
}

void RefusalLog::Note(const MemoryRefusal& refusal) {
  const std::lock_guard<std::mutex> lock(mutex_);
  last_ = refusal;
  taken_ = false;
  ++count_;
}

int64_t RefusalLog::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

std::optional<MemoryRefusal> RefusalLog::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (count_ == 0 || std::exchange(taken_, true)) return std::nullopt;
  return last_;
}

std::optional<MemoryRefusal> RefusalLog::After(int64_t count) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (count_ <= count) return std::nullopt;
  return last_;
}

std::optional<MemoryRefusal> ReadMemoryRefusal(const std::string& words) {
  const auto asked = SizeAfter(words, kAsked);
  const auto allocated = SizeBeforeOneOf(words, " already allocated", " is allocated by PyTorch");
  const auto free = SizeBeforeOneOf(words, " free", " is free");
  auto reserved = SizeBefore(words, " reserved in total");
  if (!reserved && allocated) {
    const auto unused = SizeBefore(words, " is reserved by PyTorch but unallocated");
    if (unused) {
      reserved = Size{allocated->bytes + unused->bytes, allocated->rounding + unused->rounding};
    }
  }
  if (!asked || !allocated || !reserved || !free) return std::nullopt;
  MemoryRefusal refusal{
      asked->bytes, allocated->bytes, std::max(reserved->bytes, allocated->bytes), Bytes(0),
      asked->rounding + allocated->rounding + reserved->rounding + free->rounding};
  refusal.limit = refusal.reserved + free->bytes;
  // A share of the GPU that the process may use.
  if (const auto allowed = SizeBefore(words, " allowed;")) {
    refusal.limit = std::min(refusal.limit, allowed->bytes);
    refusal.rounding += allowed->rounding;
  }
  return refusal;
}

std::string WordsOfRefusal(const MemoryRefusal& refusal) {
  const Bytes free = std::max(refusal.limit - refusal.reserved, Bytes(0));
  return absl::StrCat("out of memory. ", kAsked, ToString(refusal.asked), " (",
                      ToString(refusal.limit), " total capacity; ", ToString(refusal.allocated),
                      " already allocated; ", ToString(free), " free; ", ToString(refusal.reserved),
                      " reserved in total)");
}

Bytes AskedIn(const std::string& words) {
  const std::optional<Size> asked = SizeAfter(words, kAsked);
  return asked ? asked->bytes : Bytes(0);
}

}  // namespace stowage
