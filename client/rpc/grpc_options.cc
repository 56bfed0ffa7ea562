#include "client/rpc/grpc_options.h"

#include "absl/strings/match.h"
#include "solvers/model/field_error.h"

namespace stowage {

bool IsSpread(const std::string& address) {
  return absl::StartsWith(address, "dns:") || absl::StartsWith(address, "ipv4:") ||
         absl::StartsWith(address, "ipv6:");
}

bool IsUnixAddress(const std::string& address) {
  return absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:");
}

absl::Status CheckGrpcOptions(const GrpcOptions& options) {
  const TlsOptions& tls = options.tls;
  if (options.address.empty()) return FieldError("address", "\"\"", "must name a server");
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    return FieldError("tls", tls.cert_file + tls.key_file,
                      "must have cert_file and key_file, or neither");
  }
  if (!tls.enabled && !(tls.ca_file.empty() && tls.cert_file.empty() && tls.server_name.empty())) {
    return FieldError("tls.enabled", "false", "must be true for what else is set of tls to count");
  }
  if (!options.token.empty() && !options.token_file.empty()) {
    return FieldError("token_file", options.token_file, "must be empty beside a token");
  }
  const bool has_token = !options.token.empty() || !options.token_file.empty();
  if (has_token && !tls.enabled && !IsUnixAddress(options.address)) {
    return FieldError("address", options.address,
                      "must be reached over TLS, or be a unix socket, for a token to be sent: "
                      "anybody on the way could read it");
  }
  return absl::OkStatus();
}

}  // namespace stowage
