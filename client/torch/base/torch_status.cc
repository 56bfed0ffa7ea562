#include "client/torch/base/torch_status.h"

#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace stowage {

absl::Status CurrentExceptionToStatus(const std::string& where, absl::StatusCode other) {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(where, ": ", error.what_without_backtrace()));
  } catch (const HostMemoryError& error) {
    return absl::ResourceExhaustedError(absl::StrCat(where, ": ", error.what()));
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(absl::StrCat(where, ": out of host memory"));
  } catch (const StageRuleError& error) {
    return absl::InvalidArgumentError(absl::StrCat(where, ": ", error.what()));
  } catch (const c10::Error& error) {
    return absl::Status(other, absl::StrCat(where, ": ", error.what_without_backtrace()));
  } catch (const std::exception& error) {
    return absl::Status(other, absl::StrCat(where, ": ", error.what()));
  } catch (...) {
    return absl::Status(other, absl::StrCat(where, ": an exception of unknown type"));
  }
}

void ThrowStatus(const absl::Status& status) {
  const std::string message(status.message());
  if (absl::IsResourceExhausted(status)) C10_THROW_ERROR(OutOfMemoryError, message);
  C10_THROW_ERROR(Error, message);
}

void ThrowStatus(const absl::Status& status, const std::exception_ptr& thrown) {
  if (thrown == nullptr) ThrowStatus(status);
  try {
    std::rethrow_exception(thrown);
  } catch (c10::Error& error) {
    const std::string said = error.what_without_backtrace();
    const absl::string_view where = absl::StripSuffix(
        absl::string_view(status.message().data(), status.message().size()), ": " + said);
    if (error.context().empty()) error.add_context(std::string(where));
    throw;
  } catch (const StageRuleError&) {
  } catch (const HostMemoryError&) {
  } catch (const std::bad_alloc&) {
  } catch (const std::exception&) {
    throw;
  } catch (...) {
    // Autograd's engine lets nothing else through.
  }
  ThrowStatus(status);
}

}  // namespace stowage
