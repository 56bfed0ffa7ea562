// How the server's port is guarded: TLS, the kernel's word that the peer is on this machine, or
// nothing.
#ifndef STOWAGE_SERVER_AUTH_TLS_CREDENTIALS_H_
#define STOWAGE_SERVER_AUTH_TLS_CREDENTIALS_H_

#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <memory>
#include <string>

namespace stowage {

struct ServerTlsOptions {
  std::string cert;       // PEM, the server's chain; empty: no TLS
  std::string key;        // PEM
  std::string client_ca;  // PEM; empty: no certificates of clients
  // Whoever has no certificate ends at the handshake. Else a token may stand for it.
  bool require_client_certificate = true;
  std::chrono::milliseconds reload_interval = std::chrono::seconds(10);

  bool enabled() const { return !cert.empty(); }
};

// Whether a listen address ("HOST:PORT" or "unix:PATH") can be reached from this machine alone.
bool IsLocalAddress(const std::string& listen);

class ServerCertificates;

// With TLS, for which `certificates` are; else null. Without it: with `identified` (callers have tokens)
// the credentials that gRPC calls local, on which alone they can be checked; the address must be local.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(
    const ServerTlsOptions& tls, const ServerCertificates* certificates, const std::string& listen,
    bool identified);

}  // namespace stowage

#endif  // STOWAGE_SERVER_AUTH_TLS_CREDENTIALS_H_
