// What the flags say about a Redis: that of the plans, whose flags begin with --redis, or that of decisions, with
// --decisions_redis.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_REDIS_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_REDIS_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/config/config_sources.h"
#include "server/store/redis_address.h"

namespace stowage {

// The values of the flags of one Redis.
struct RedisFlags {
  std::string name;  // of the flag with its address, which the names of the others begin with
  std::string address;
  std::string user;
  std::string password_file;
  std::string sentinel_user;
  std::string sentinel_password_file;
  RedisTlsFiles tls;
};

RedisFlags PlansRedisFlags();
RedisFlags DecisionsRedisFlags();

// Nothing: there is none. INVALID_ARGUMENT that names flag, value and rule: an address that cannot be one, flags
// that do not go together, a file that cannot be read or used.
absl::StatusOr<std::optional<RedisAddress>> RedisFromFlags(const ConfigSources& sources,
                                                           const RedisFlags& flags);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_REDIS_H_
