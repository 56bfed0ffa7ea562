// What the flags say about where plans are kept.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_STORE_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_STORE_H_

#include "absl/status/statusor.h"
#include "server/config/config_sources.h"
#include "server/config/stores.h"

namespace stowage {

// INVALID_ARGUMENT that names flag, value and rule: an address or path that cannot be one, a folder
// that is not there, or not known where it would be, a file of a password that cannot be read. Opens
// no store and makes no folder.
absl::StatusOr<StoreConfig> StoreConfigFromFlags(const ConfigSources& sources);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_STORE_H_
