// What a fuzz target does when a promise is broken: says which, and stops the process.
#ifndef STOWAGE_TESTS_FUZZ_REQUIRE_H_
#define STOWAGE_TESTS_FUZZ_REQUIRE_H_

#include <cstdio>
#include <cstdlib>
#include <string>

namespace stowage::testing {

inline void Require(bool kept, const char* promise, const std::string& detail = "") {
  if (kept) return;
  std::fprintf(stderr, "broken: %s\n%s\n", promise, detail.c_str());
  std::abort();
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_FUZZ_REQUIRE_H_
