#include "server/rpc/build_info.h"

#include <grpcpp/grpcpp.h>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

std::string Compiler() {
#if defined(__clang__)
  return absl::StrCat("clang ", __clang_major__, ".", __clang_minor__);
#else
  return absl::StrCat("gcc ", __GNUC__, ".", __GNUC_MINOR__);
#endif
}

}  // namespace

std::string BuildInfo() {
#ifdef NDEBUG
  const char* const kind = "release";
#else
  const char* const kind = "debug";
#endif
  return absl::StrCat(kind, ", ", Compiler(), ", gRPC ", grpc::Version());
}

}  // namespace stowage
