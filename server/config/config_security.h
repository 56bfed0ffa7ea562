// What the flags say about who may call, and whether that can be kept.
//
// Refused, with the reason: an address that others reach where callers are not known or words can be
// overheard, unless --insecure_network says so; tokens over a network without TLS (gRPC would end
// the process); flags that have no effect without others; files that cannot be used.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_SECURITY_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_SECURITY_H_

#include <sys/types.h>

#include <optional>

#include "absl/status/status.h"
#include "server/auth/authenticator.h"
#include "server/auth/tls_credentials.h"
#include "server/config/config_sources.h"

namespace stowage {

// OK, or INVALID_ARGUMENT. Reads the files; keeps nothing of them.
absl::Status CheckSecurity(const ConfigSources& sources);

ServerTlsOptions TlsOf();
AuthOptions AuthOf();
// Nothing: not octal, or not permissions.
std::optional<mode_t> UnixSocketMode();

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_SECURITY_H_
