// How to reach a server, and as whom.
#ifndef STOWAGE_CLIENT_RPC_GRPC_OPTIONS_H_
#define STOWAGE_CLIENT_RPC_GRPC_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "solvers/model/units.h"

namespace stowage {

// PEM files. They are read when a channel is made: after a failure, rotated ones are read anew.
struct TlsOptions {
  bool enabled = false;
  std::string ca_file;    // who may have signed the server's certificate; empty: the system's CAs
  std::string cert_file;  // of the client, with its chain, where the server asks for one
  std::string key_file;
  // The name that the certificate must be for, instead of the address's.
  std::string server_name;
};

struct GrpcOptions {
  // "host:port", "unix:/path". "dns:///name:port" spreads calls over all addresses of the name,
  // "ipv4:1.2.3.4:7070,1.2.3.5:7070" over these: each key has its server (routed_connection.h), so all clients
  // best say it the same way. "dns://resolver/name:port" is gRPC's to look up: there calls take turns.
  std::string address;
  TlsOptions tls;
  // At most one of them: a bearer token, or the file that holds it, read again when it changes. Sent
  // over TLS and unix sockets only.
  std::string token;
  std::string token_file;
  // Of the program that asks, before "stowage/<version>": "trainer/2.1". May be empty.
  std::string user_agent;
  // Of one message, either way; RESOURCE_EXHAUSTED beyond it. The server has its own limit.
  Bytes message_limit{int64_t{64} << 20};
  // How long to wait for a connection; of a call with a deadline at most half of what is left, so
  // that time remains to plan without the server. A call that finds the server away fails then: it
  // never waits until there is one.
  std::chrono::milliseconds connect_timeout{2000};
  // For each attempt of a call without a deadline.
  std::chrono::milliseconds default_timeout{120000};
};

// INVALID_ARGUMENT made by FieldError for options that contradict each other or would show a token
// to the network. Reads no file.
absl::Status CheckGrpcOptions(const GrpcOptions& options);

// "dns:...", "ipv4:..." and "ipv6:...": a name or a list of addresses that calls are spread over.
bool IsSpread(const std::string& address);

// "unix:/path" and "unix-abstract:name": what is sent stays on this machine.
bool IsUnixAddress(const std::string& address);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_OPTIONS_H_
