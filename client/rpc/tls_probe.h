// Shakes hands with a TLS server and tells what gRPC does not: what is wrong with whose certificate.
// Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_TLS_PROBE_H_
#define STOWAGE_CLIENT_RPC_TLS_PROBE_H_

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "client/rpc/credentials.h"
#include "client/rpc/socket_probe.h"

namespace stowage {

struct TlsFinding {
  enum class Kind {
    kGood,
    kNotTls,
    kUnknownCa,         // the certificate's signer is none that the client trusts
    kExpired,           // or the clock of this machine is fast
    kNotYetValid,       // or the clock of this machine is slow
    kWrongName,         // the certificate is for other names
    kBadCertificate,    // anything else that is wrong with it
    kBadClientFiles,    // the client's certificate and key cannot be used
    kClientCertWanted,  // the server asks for a certificate and got none
    kClientCertRefused,
    kNotHttp2,  // a TLS server, not of gRPC
  };
  Kind kind = Kind::kGood;
  // For people: the names that the certificate is for, its dates, what the library says.
  std::string detail;
};

// `name` is the one that the certificate must be for; it may be an IP address. Errors as of
// ProbeSocket::Connect. Thread-safe.
absl::StatusOr<TlsFinding> ProbeTls(const Endpoint& endpoint, const std::string& name,
                                    const TlsFiles& files, std::chrono::milliseconds patience);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_TLS_PROBE_H_
