// Whether a Redis has what it acknowledged after any end of it. Decisions that have a Redis of their own are
// exchanged through no other.
//
// A decision then counts once it is on the deciding server's disk and on that Redis's: DecisionBook::Decide asks the Redis
// what there is (and fails there while it is away, before anything is written), writes to its own disk, tells the Redis, and
// withdraws by a later decision what the Redis may have taken without saying so.
//
// Why Redis and not etcd: the client with its time-outs, TLS and sentinels is here, operators run a Redis already, and there is no
// second protocol. Killed, frozen and with a full disk, neither lost what it had acknowledged, and Redis was back at once
// (tests/bench/measured/engines.md). What etcd would give is consensus: a decision that several machines have before it is
// acknowledged. One Redis has one disk; one with replicas may lose the last decisions in a failover, since it replicates after it
// answers. The deciding server's own file stands beside it in both cases, and is told again. Another engine is another SharedDecisions.
#ifndef STOWAGE_SERVER_DECISIONS_DURABLE_REDIS_H_
#define STOWAGE_SERVER_DECISIONS_DURABLE_REDIS_H_

#include "absl/status/status.h"
#include "server/store/redis_connection.h"

namespace stowage {

// Of its settings, as CONFIG GET says them, must be:
//
//   appendonly yes                 every change goes to a file
//   appendfsync always             which is synced before the change is answered
//   no-appendfsync-on-rewrite no   also while that file is written anew
//   maxmemory-policy noeviction    and a server that is full refuses rather than forgets
//
// FAILED_PRECONDITION that names the setting, its value and the rule; also of a server that does not say. UNAVAILABLE:
// it does not answer. One round trip. Thread-safe. For RedisOptions::check: each server that a connection is made to is
// looked at, and what is changed while it is open is found with the next one.
absl::Status CheckDurable(RedisConnection* redis, RedisConnection::Clock::time_point deadline);

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_DURABLE_REDIS_H_
