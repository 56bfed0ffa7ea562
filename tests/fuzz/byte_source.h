// Draws values from the bytes of a fuzzer. When they run out, everything is zero.
#ifndef STOWAGE_TESTS_FUZZ_BYTE_SOURCE_H_
#define STOWAGE_TESTS_FUZZ_BYTE_SOURCE_H_

#include <cstddef>
#include <cstdint>

namespace stowage::testing {

class ByteSource {
 public:
  ByteSource(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }

  int Below(int bound) { return Byte() % bound; }
  bool OneIn(int bound) { return Below(bound) == bound - 1; }

  // How large quantities get, so that an input has a fair chance of being legal as a whole.
  void set_wildness(int wildness) { wildness_ = wildness; }

  // Wildness 0: small. 1: up to some MiB. 2: now and then anything that 63 bits hold, and rarely
  // negative.
  int64_t Quantity() {
    const int kind = Byte();
    if (wildness_ == 0 || kind < 160) return kind % 16;
    if (wildness_ == 1 || kind < 220) return int64_t{Byte()} << (kind % 16);
    if (kind < 250) return (int64_t{1} << (Byte() % 63)) + Byte() - 128;
    if (kind < 254) return INT64_MAX - Byte();
    return -int64_t{Byte()};
  }

 private:
  const uint8_t* data_;
  size_t size_;
  int wildness_ = 0;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_FUZZ_BYTE_SOURCE_H_
