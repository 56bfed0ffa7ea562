#include "server/auth/tls_credentials.h"

#include <arpa/inet.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "absl/strings/match.h"
#include "server/auth/server_certificates.h"

namespace stowage {
namespace {

using grpc::experimental::TlsServerCredentialsOptions;

std::shared_ptr<grpc::ServerCredentials> Tls(const ServerTlsOptions& tls,
                                             const ServerCertificates& certificates) {
  TlsServerCredentialsOptions options(certificates.provider());
  options.watch_identity_key_cert_pairs();
  if (!tls.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(tls.require_client_certificate
                                      ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace

bool IsLocalAddress(const std::string& listen) {
  if (absl::StartsWith(listen, "unix:")) return true;
  const std::string host = listen.substr(0, listen.rfind(':'));
  // A name that begins like an address may be anybody's.
  in_addr address{};
  const bool loopback =
      inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
  return host == "localhost" || host == "[::1]" || loopback;
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const ServerTlsOptions& tls, const ServerCertificates* certificates, const std::string& listen,
    bool identified) {
  if (certificates != nullptr) return Tls(tls, *certificates);
  if (!identified) return grpc::InsecureServerCredentials();
  return grpc::experimental::LocalServerCredentials(absl::StartsWith(listen, "unix:") ? UDS
                                                                                      : LOCAL_TCP);
}

}  // namespace stowage
