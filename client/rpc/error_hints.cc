#include "client/rpc/error_hints.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

absl::Status Append(const absl::Status& status, const std::string& words) {
  absl::Status longer(status.code(), absl::StrCat(status.message(), " [", words, "]"));
  status.ForEachPayload([&longer](absl::string_view url, const absl::Cord& payload) {
    longer.SetPayload(url, payload);
  });
  return longer;
}

std::string AwayWords(const GrpcOptions& options) {
  if (!options.tls.enabled) {
    return absl::StrCat("tried without TLS; is stowaged running at ", options.address,
                        "? a server that wants TLS looks the same; `stowage doctor` tells");
  }
  return absl::StrCat("tried with TLS; is stowaged running at ", options.address,
                      "? a server without TLS, one that wants a client certificate, and a "
                      "certificate for another name or of another CA look the same; `stowage "
                      "doctor` tells");
}

std::string SentWords(const GrpcOptions& options) {
  const std::string sent = CredentialsWords(options);
  return sent.empty() ? "no credentials were sent: neither a client certificate nor a token"
                      : absl::StrCat("sent: ", sent);
}

}  // namespace

absl::Status Explain(const absl::Status& status, const GrpcOptions& options) {
  // What a server says by name it says itself: it is there.
  if (absl::IsUnavailable(status) && GetReason(status).empty()) {
    return Append(status, AwayWords(options));
  }
  if (absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status)) {
    return Append(status, SentWords(options));
  }
  if (absl::IsResourceExhausted(status) && absl::StrContains(status.message(), "larger than max")) {
    return Append(status, LimitWords(options));
  }
  // Those of this version say by name what they lack.
  if (absl::IsUnimplemented(status) && GetReason(status).empty()) {
    return Append(status,
                  "the server does not have this method: it may be older than this program");
  }
  return status;
}

std::string CredentialsWords(const GrpcOptions& options) {
  std::vector<std::string> sent;
  if (!options.tls.cert_file.empty()) {
    sent.push_back(absl::StrCat("the client certificate ", options.tls.cert_file));
  }
  if (!options.token.empty()) sent.push_back("a bearer token from the options");
  if (!options.token_file.empty()) {
    sent.push_back(absl::StrCat("the bearer token of ", options.token_file));
  }
  return absl::StrJoin(sent, " and ");
}

std::string LimitWords(const GrpcOptions& options) {
  return absl::StrCat("this connection's limit is ", options.message_limit.value(),
                      " bytes per message");
}

}  // namespace stowage
