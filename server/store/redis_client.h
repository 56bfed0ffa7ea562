// How stores, leases and decisions reach Redis: one server (redis_pool.h), or those of a cluster
// (redis_cluster.h).
#ifndef STOWAGE_SERVER_STORE_REDIS_CLIENT_H_
#define STOWAGE_SERVER_STORE_REDIS_CLIENT_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/observe/log.h"
#include "server/observe/server_metrics.h"
#include "server/store/circuit_breaker.h"
#include "server/store/name_lookup.h"
#include "server/store/redis_address.h"
#include "server/store/redis_connection.h"

namespace stowage {

struct RedisOptions {
  RedisAddress address;
  std::chrono::nanoseconds timeout = std::chrono::milliseconds(50);
  int connections = 8;  // at once to a server, >= 1; more callers wait for one
  size_t largest_reply = size_t{16} << 20;
  BreakerOptions breaker;
  ServerMetrics* metrics =
      nullptr;         // told whether a server is being left alone; outlives the client
  Log* log = nullptr;  // the same, with the reason
  // Of one of a cluster's servers: that it sends on what it is asked is an answer, no failure.
  bool in_cluster = false;
  // What each new connection must pass before it is used. FAILED_PRECONDITION: the server will not do, and is as
  // one that is away; each call that tries says why. Null: all do.
  std::function<absl::Status(RedisConnection*, RedisConnection::Clock::time_point)> check;
  RedisUse use = RedisUse::kCache;    // for metrics and log: a server may have one of each
  NameLookup* names = SystemNames();  // where hosts are; outlives the client
};

// Thread-safe. Connects when first used.
class RedisClient {
 public:
  using Replies = std::vector<RedisReply>;

  virtual ~RedisClient() = default;

  // A reply to each command, errors of single commands among them (see StatusOf), from the server that
  // has the key of the first one: in a cluster, all keys of a call must have the same tag. UNAVAILABLE
  // with the reason: no answer, a server that cannot serve, or one left alone after such failures.
  // RESOURCE_EXHAUSTED: a reply over the limit. FAILED_PRECONDITION: a server that does not pass the check.
  virtual absl::StatusOr<Replies> Run(const std::vector<RedisCommand>& commands) = 0;

  // The same from the server that has `key`, for commands that have none.
  virtual absl::StatusOr<Replies> RunAt(const std::string& key,
                                        const std::vector<RedisCommand>& commands) = 0;

  // The same from each server, in no order. Not OK: one of them failed.
  virtual absl::StatusOr<std::vector<Replies>> RunOnAll(
      const std::vector<RedisCommand>& commands) = 0;

  // Whether keys that one call names need a tag in common (redis_keys.h).
  virtual bool is_cluster() const = 0;

  // How often another server was found to have some of the keys. What the one before acknowledged last
  // may have been lost then.
  virtual int64_t failovers() const = 0;

  // Whether all servers answer, and pass the check: for a start-up check, and for tests.
  absl::Status Ping() { return RunOnAll({{"PING"}}).status(); }
};

// As the address says.
std::shared_ptr<RedisClient> MakeRedisClient(const RedisOptions& options);

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_CLIENT_H_
