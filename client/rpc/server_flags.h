// The flags by which programs say how to reach a server, and as whom.
#ifndef STOWAGE_CLIENT_RPC_SERVER_FLAGS_H_
#define STOWAGE_CLIENT_RPC_SERVER_FLAGS_H_

#include <string>
#include <vector>

#include "client/rpc/grpc_options.h"

namespace stowage {

// The flags of commands that ask a server, after a command's own `flags`; and what they say.
std::vector<std::string> WithServerFlags(std::vector<std::string> flags);
GrpcOptions ServerFromFlags();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_SERVER_FLAGS_H_
