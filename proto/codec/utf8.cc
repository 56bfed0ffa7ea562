#include "proto/codec/utf8.h"

#include <cstddef>
#include <cstdint>

namespace stowage {
namespace {

uint8_t ByteAt(const std::string& text, size_t i) {
  return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
}

bool InRange(uint8_t byte, uint8_t low, uint8_t high) { return byte >= low && byte <= high; }

bool IsContinuation(uint8_t byte) { return InRange(byte, 0x80, 0xBF); }

// Length of the well-formed sequence at `i` (Unicode 15, table 3-7: no overlong forms, no
// surrogates); 0 if there is none.
size_t SequenceLength(const std::string& text, size_t i) {
  const uint8_t first = ByteAt(text, i);
  const uint8_t second = ByteAt(text, i + 1);
  if (first < 0x80) return 1;
  if (InRange(first, 0xC2, 0xDF)) return IsContinuation(second) ? 2 : 0;
  const bool third = IsContinuation(ByteAt(text, i + 2));
  if (InRange(first, 0xE0, 0xEF)) {
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return InRange(second, low, high) && third ? 3 : 0;
  }
  if (!InRange(first, 0xF0, 0xF4)) return 0;
  const uint8_t low = first == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
  return InRange(second, low, high) && third && IsContinuation(ByteAt(text, i + 3)) ? 4 : 0;
}

}  // namespace

std::string ToValidUtf8(const std::string& text) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    if (length == 0) {
      valid += '?';
      ++i;
    } else {
      valid.append(text, i, length);
      i += length;
    }
  }
  return valid;
}

}  // namespace stowage
