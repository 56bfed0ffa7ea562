// Says beside an error what was tried and what is likely to be wrong. Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_ERROR_HINTS_H_
#define STOWAGE_CLIENT_RPC_ERROR_HINTS_H_

#include <string>

#include "absl/status/status.h"
#include "client/rpc/grpc_options.h"

namespace stowage {

// The same status, payloads included, with a hint in brackets where there is one. Credentials are
// named, never shown.
absl::Status Explain(const absl::Status& status, const GrpcOptions& options);

// "the client certificate /c.pem and the bearer token of /t"; empty without any.
std::string CredentialsWords(const GrpcOptions& options);

// "this connection's limit is 4000 bytes per message".
std::string LimitWords(const GrpcOptions& options);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_ERROR_HINTS_H_
