#ifndef STOWAGE_TESTS_CLIENT_TORCH_ERROR_OF_H_
#define STOWAGE_TESTS_CLIENT_TORCH_ERROR_OF_H_

#include <c10/util/Exception.h>

#include <functional>
#include <string>

namespace stowage {

// The message of the c10::Error that a call throws; "nothing" if it throws none.
inline std::string ErrorOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing";
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_ERROR_OF_H_
