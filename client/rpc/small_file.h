// Files of credentials: certificates, keys, tokens. Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_SMALL_FILE_H_
#define STOWAGE_CLIENT_RPC_SMALL_FILE_H_

#include <string>

#include "absl/status/statusor.h"

namespace stowage {

// What a file of at most 1 MiB holds. INVALID_ARGUMENT made by FieldError that names `field` and the
// path, never the contents.
absl::StatusOr<std::string> ReadSmallFile(const std::string& field, const std::string& path);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_SMALL_FILE_H_
