#include "client/rpc/error_hints.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

absl::Status Append(const absl::Status& status, const std::string& words) {
  absl::Status longer(status.code(), absl::StrCat(status.message(), " [", words, "]"));
  status.ForEachPayload([&longer](absl::string_view url, const absl::Cord& payload) {
    longer.SetPayload(url, payload);
  });
  return longer;
}

}  // namespace

absl::Status Explain(const absl::Status& status, const GrpcOptions& options) {
  if (absl::IsUnavailable(status)) {
    return Append(status, absl::StrCat("is stowaged running at ", options.address,
                                       "? a server that wants TLS looks the same"));
  }
  if (absl::IsResourceExhausted(status) && absl::StrContains(status.message(), "larger than max")) {
    return Append(status, LimitWords(options));
  }
  return status;
}

std::string LimitWords(const GrpcOptions& options) {
  return absl::StrCat("this connection's limit is ", options.message_limit.value(),
                      " bytes per message");
}

}  // namespace stowage
