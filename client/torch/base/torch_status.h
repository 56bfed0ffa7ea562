// Where exceptions end: LibTorch and the caller's stages throw, our interfaces return a Status.
#ifndef STOWAGE_CLIENT_TORCH_BASE_TORCH_STATUS_H_
#define STOWAGE_CLIENT_TORCH_BASE_TORCH_STATUS_H_

#include <exception>
#include <stdexcept>
#include <string>

#include "absl/status/status.h"

namespace stowage {

// A stage that breaks a rule of ChainModel.
class StageRuleError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// There is no more host memory for what is to leave the device.
class HostMemoryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The exception that is being handled as a Status, prefixed by `where`; to be called in a catch
// block only. RESOURCE_EXHAUSTED for out of memory, INVALID_ARGUMENT for a StageRuleError, `other`
// for everything else.
absl::Status CurrentExceptionToStatus(const std::string& where, absl::StatusCode other);

// The way back, for what LibTorch calls: throws c10::OutOfMemoryError for RESOURCE_EXHAUSTED, else
// c10::Error.
[[noreturn]] void ThrowStatus(const absl::Status& status);
// The same where `thrown` is what the status was made of, or null: throws that itself if it is an exception of LibTorch's,
// to which it adds the status's words once, or of somebody else's that is a std::exception. Our own become what they become
// above.
[[noreturn]] void ThrowStatus(const absl::Status& status, const std::exception_ptr& thrown);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_TORCH_STATUS_H_
