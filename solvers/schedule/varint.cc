#include "solvers/schedule/varint.h"

namespace stowage {

void AppendVarint(uint64_t value, std::string* out) {
  while (value >= 0x80) {
    out->push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out->push_back(static_cast<char>(value));
}

bool VarintReader::Byte(uint8_t* value) {
  if (done()) return false;
  *value = static_cast<uint8_t>(bytes_[position_++]);
  return true;
}

bool VarintReader::Varint(uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte = 0;
    if (!Byte(&byte)) return false;
    const uint64_t bits = byte & 0x7f;
    if (shift == 63 && bits > 1) return false;
    *value |= bits << shift;
    if ((byte & 0x80) == 0) return byte != 0 || shift == 0;
  }
  return false;
}

bool VarintReader::Count(int64_t max, int64_t* value) {
  uint64_t read = 0;
  if (!Varint(&read) || max < 0 || read > static_cast<uint64_t>(max)) return false;
  *value = static_cast<int64_t>(read);
  return true;
}

bool VarintReader::String(int64_t size, std::string* value) {
  if (size < 0 || static_cast<uint64_t>(size) > bytes_.size() - position_) return false;
  *value = bytes_.substr(position_, static_cast<size_t>(size));
  position_ += static_cast<size_t>(size);
  return true;
}

}  // namespace stowage
