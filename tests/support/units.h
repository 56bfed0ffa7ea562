// Sizes as tests write them.
#ifndef STOWAGE_TESTS_SUPPORT_UNITS_H_
#define STOWAGE_TESTS_SUPPORT_UNITS_H_

#include <cstdint>

namespace stowage {

inline constexpr int64_t kMiB = int64_t{1} << 20;

}  // namespace stowage

#endif  // STOWAGE_TESTS_SUPPORT_UNITS_H_
