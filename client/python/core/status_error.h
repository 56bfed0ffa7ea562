// absl::Status on its way to Python: thrown within the extension, an exception of stowage.errors outside of it.
#ifndef STOWAGE_CLIENT_PYTHON_CORE_STATUS_ERROR_H_
#define STOWAGE_CLIENT_PYTHON_CORE_STATUS_ERROR_H_

#include <exception>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

class StatusError final : public std::exception {
 public:
  explicit StatusError(absl::Status status)
      : status_(std::move(status)), text_(status_.ToString()) {}

  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  absl::Status status_;
  std::string text_;
};

[[noreturn]] void Throw(absl::Status status);

inline void ThrowUnlessOk(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <class T>
T ValueOrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) Throw(value.status());
  return *std::move(value);
}

// Has a StatusError become what stowage.errors makes of its code, its message and its field.
void RegisterStatusErrors();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_STATUS_ERROR_H_
