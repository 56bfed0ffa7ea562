// Leases in Redis: a key with a random token and a time to live, renewed while it is held by a
// thread of its own and deleted by whoever's token it is.
//
// A holder that dies loses it after the time to live. One Redis, one lease: there is no quorum of
// several. A lease that is lost in a failover, because the replica had not heard of it, is taken again
// by its holder's next renewal, within a third of the time to live, unless another server was
// granted it in between: that costs a second solve, nothing else.
#ifndef STOWAGE_SERVER_STORE_REDIS_SOLVE_LEASE_H_
#define STOWAGE_SERVER_STORE_REDIS_SOLVE_LEASE_H_

#include <chrono>
#include <memory>
#include <string>

#include "server/store/redis_client.h"
#include "server/store/redis_keys.h"
#include "server/store/solve_lease.h"

namespace stowage {

struct RedisLeaseOptions {
  std::string prefix = "stowage";  // see IsRedisPrefix
  std::chrono::milliseconds time_to_live = std::chrono::seconds(5);
  bool keyed = false;  // see RedisKeys
};

class RedisSolveLease final : public SolveLease {
 public:
  RedisSolveLease(const RedisLeaseOptions& options, std::shared_ptr<RedisClient> redis);
  // Leases that are still held are renewed no more, and may be destroyed later.
  ~RedisSolveLease() override;

  LeaseAnswer Acquire(const SolveQuestion& question) override;

 private:
  class Renewals;
  class Held;

  const RedisLeaseOptions options_;
  const RedisKeys keys_;
  const std::shared_ptr<RedisClient> redis_;
  const std::shared_ptr<Renewals> renewals_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_SOLVE_LEASE_H_
