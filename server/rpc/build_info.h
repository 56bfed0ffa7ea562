// How this server was built, for people.
#ifndef STOWAGE_SERVER_RPC_BUILD_INFO_H_
#define STOWAGE_SERVER_RPC_BUILD_INFO_H_

#include <string>

namespace stowage {

// "release, gcc 12.2, gRPC 1.51.1".
std::string BuildInfo();

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_BUILD_INFO_H_
