// Where the primary of a Redis with replicas is by now, as sentinels say (Redis's "Guidelines for Redis
// clients with support for Redis Sentinel"): asked before each connection and now and then, and what they
// name is believed once it says itself that it is one.
#ifndef STOWAGE_SERVER_STORE_REDIS_SENTINEL_H_
#define STOWAGE_SERVER_STORE_REDIS_SENTINEL_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/store/name_lookup.h"
#include "server/store/redis_address.h"
#include "server/store/redis_connection.h"

namespace stowage {

// Thread-safe.
class RedisSentinels {
 public:
  using Clock = RedisConnection::Clock;

  struct Primary {
    std::unique_ptr<RedisConnection> connection;
    std::string where;  // host and port
  };

  // `address` has sentinels; `names` outlives this object.
  RedisSentinels(const RedisAddress& address, NameLookup* names)
      : address_(address), names_(names) {}

  // A new connection to the primary. The sentinel that answered last is asked first; one that is silent
  // leaves the others, and the primary, their share of the time. UNAVAILABLE with the reason.
  absl::StatusOr<Primary> Connect(Clock::time_point deadline);
  // Where a sentinel says that it is, as Primary::where.
  absl::StatusOr<std::string> Where(Clock::time_point deadline);

 private:
  absl::StatusOr<RedisHost> Ask(const RedisHost& sentinel, Clock::time_point deadline) const;
  absl::StatusOr<RedisHost> AskAll(Clock::time_point deadline);

  const RedisAddress address_;
  NameLookup* const names_;
  std::atomic<size_t> first_{0};
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_SENTINEL_H_
