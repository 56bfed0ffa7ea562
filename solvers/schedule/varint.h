// Variable-length integers, 7 bits to a byte, low ones first: what compact encodings are made of.
#ifndef STOWAGE_SOLVERS_SCHEDULE_VARINT_H_
#define STOWAGE_SOLVERS_SCHEDULE_VARINT_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace stowage {

void AppendVarint(uint64_t value, std::string* out);

// Small magnitudes of either sign become small numbers.
inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Reads one after the other; every read says whether there was one. `bytes` must outlive it.
class VarintReader {
 public:
  explicit VarintReader(const std::string& bytes) : bytes_(bytes) {}

  bool done() const { return position_ == bytes_.size(); }
  bool Byte(uint8_t* value);
  // The shortest form only, so that a value has one encoding.
  bool Varint(uint64_t* value);
  // A varint that is at most `max`.
  bool Count(int64_t max, int64_t* value);
  // `size` bytes as they are.
  bool String(int64_t size, std::string* value);

 private:
  const std::string& bytes_;
  size_t position_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_VARINT_H_
