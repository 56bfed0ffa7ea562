// The function of a shared library behind one that a program has defined in its place. Internal to
// tests/tsan.
#ifndef STOWAGE_TESTS_TSAN_NEXT_FUNCTION_H_
#define STOWAGE_TESTS_TSAN_NEXT_FUNCTION_H_

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/base/options.h"

// Of ThreadSanitizer: what was done before a release of an address is seen after an acquire of it.
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

namespace stowage::testing {

#define STOWAGE_QUOTED_AGAIN(name) #name
#define STOWAGE_QUOTED(name) STOWAGE_QUOTED_AGAIN(name)

// "4absl7debian3": Abseil's namespace in mangled names.
inline std::string MangledAbseil() {
  const std::string version = STOWAGE_QUOTED(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  return "4absl" + std::to_string(version.size()) + version;
}

// `name` is mangled.
template <class Function>
Function NextFunction(const std::string& name) {
  void* const found = dlsym(RTLD_NEXT, name.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "the shared libraries have no %s\n", name.c_str());
    std::abort();
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_TSAN_NEXT_FUNCTION_H_
