// What a fuzz target that draws its input defines; fuzz.cc calls it.
#ifndef STOWAGE_TESTS_FUZZ_FUZZ_H_
#define STOWAGE_TESTS_FUZZ_FUZZ_H_

#include "tests/fuzz/byte_source.h"

namespace stowage {

// Stops the process (require.h) where a promise is broken.
void Fuzz(testing::ByteSource* in);

}  // namespace stowage

#endif  // STOWAGE_TESTS_FUZZ_FUZZ_H_
