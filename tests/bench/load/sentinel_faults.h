// A Redis with a replica and three sentinels, of the load generator's own, whose primary dies while the service uses it.
#ifndef STOWAGE_TESTS_BENCH_LOAD_SENTINEL_FAULTS_H_
#define STOWAGE_TESTS_BENCH_LOAD_SENTINEL_FAULTS_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/redis_connection.h"
#include "tests/server/store/redis_server.h"

namespace stowage {

// All of it is processes of this one, on ports of 127.0.0.1. Not thread-safe.
class SentinelFaults {
 public:
  // Started; see AwaitWhole.
  SentinelFaults();

  // The flag that makes stowaged use it.
  std::string flag() const;

  // Until the sentinels agree on a primary, and its replica has all that it has: three seconds after the
  // start, some twenty after a failover. DEADLINE_EXCEEDED after two minutes.
  absl::Status AwaitWhole();
  // Kills the primary (SIGKILL), waits until the sentinels have promoted the replica, and starts the dead one
  // again, empty; the sentinels make a replica of it. Begins with AwaitWhole; DEADLINE_EXCEEDED, too, without a promotion.
  absl::Status FailOver();
  // The next of: the primary stopped until the replica is promoted, and then awake as one that believes it still
  // is; all that the primary has gone; both stopped for five seconds. Errors of AwaitWhole and FailOver.
  absl::Status Next();
  // All that the primary has is gone. Errors of AwaitWhole.
  absl::Status Empty();

 private:
  std::optional<size_t> Primary() const;
  std::optional<size_t> WholePrimary() const;
  absl::StatusOr<size_t> AwaitWholePrimary();
  bool HasReplica(size_t server) const;
  bool IsKnownTo(const testing::RedisSentinel& sentinel) const;
  absl::StatusOr<RedisReply> AskServer(size_t server, const RedisCommand& command) const;
  absl::Status Await(const std::function<bool()>& holds, const std::string& what);
  absl::Status AwaitPrimary(size_t server);
  absl::Status FreezePrimary(size_t primary);
  absl::Status FreezeBoth();
  void DropOutput();

  const std::array<int, 2> ports_;
  std::array<std::unique_ptr<testing::RedisServer>, 2> servers_;
  std::vector<std::unique_ptr<testing::RedisSentinel>> sentinels_;
  int step_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_SENTINEL_FAULTS_H_
