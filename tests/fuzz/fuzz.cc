#include "tests/fuzz/fuzz.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stowage::testing::ByteSource in(data, size);
  stowage::Fuzz(&in);
  return 0;
}
