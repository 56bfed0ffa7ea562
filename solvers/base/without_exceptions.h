// Calls code that may throw, from code that must not.
#ifndef STOWAGE_SOLVERS_BASE_WITHOUT_EXCEPTIONS_H_
#define STOWAGE_SOLVERS_BASE_WITHOUT_EXCEPTIONS_H_

#include <exception>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace stowage {

// What call() returns, an absl::Status or absl::StatusOr. RESOURCE_EXHAUSTED where memory could not be had, INTERNAL
// for any other exception.
template <class Call>
auto WithoutExceptions(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the machine has not the memory that this solve takes");
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat("an exception in a solve: ", thrown.what()));
  } catch (...) {
    return absl::InternalError("an exception in a solve, of an unknown type");
  }
}

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_WITHOUT_EXCEPTIONS_H_
