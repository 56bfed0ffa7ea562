// Connections to one Redis server for all threads of this one, behind a circuit breaker. Which server
// that is, sentinels may say (redis_sentinel.h).
//
// Every call takes `timeout` at most, to look up a name, to connect and to wait for a free connection
// included, beside what its bytes take at 8 MiB/s; and next to nothing while the breaker is open.
#ifndef STOWAGE_SERVER_STORE_REDIS_POOL_H_
#define STOWAGE_SERVER_STORE_REDIS_POOL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/circuit_breaker.h"
#include "server/store/redis_client.h"
#include "server/store/redis_connection.h"
#include "server/store/redis_sentinel.h"

namespace stowage {

// Thread-safe. Connects when first used.
class RedisPool final : public RedisClient {
 public:
  explicit RedisPool(const RedisOptions& options);

  absl::StatusOr<Replies> Run(const std::vector<RedisCommand>& commands) override;
  absl::StatusOr<Replies> RunAt(const std::string&,
                                const std::vector<RedisCommand>& commands) override {
    return Run(commands);
  }
  absl::StatusOr<std::vector<Replies>> RunOnAll(const std::vector<RedisCommand>& commands) override;
  bool is_cluster() const override { return false; }
  int64_t failovers() const override { return failovers_; }

  const std::string& host() const { return options_.address.host_or_path; }

  // Whether the server is being left alone.
  bool resting() const { return breaker_.open(); }

 private:
  using Clock = RedisConnection::Clock;
  using Connection = std::unique_ptr<RedisConnection>;

  // Opens the connection if there is none, or none any more, or one to a server that has become a
  // replica.
  absl::StatusOr<std::vector<RedisReply>> RunOn(Connection* connection,
                                                const std::vector<RedisCommand>& commands,
                                                Clock::time_point deadline);
  // Connected, and checked.
  absl::Status Open(Connection* connection, Clock::time_point deadline);
  absl::Status Connect(Connection* connection, Clock::time_point deadline);
  void NotePrimary(const std::string& where);
  // Asks the sentinels once a second: a primary that was replaced may go on taking writes for many
  // seconds, which will be lost, and grant leases that another one grants, too.
  bool HasLostItsPlace(Clock::time_point deadline);
  void DropResting();
  // Those who are to know whether the server is being left alone, after a call that ended so.
  void Tell(const absl::Status& status);
  // A connection that rests, or null where a new one may be opened; false when none came free.
  bool Take(Clock::time_point deadline, Connection* connection);
  void GiveBack(Connection connection);

  const RedisOptions options_;
  CircuitBreaker breaker_;
  const std::unique_ptr<RedisSentinels> sentinels_;  // null: none
  std::atomic<int64_t> failovers_{0};
  std::atomic<bool> told_resting_{false};
  std::mutex mutex_;
  std::condition_variable freed_;
  std::vector<Connection> resting_;
  int taken_ = 0;
  std::string primary_;  // where the sentinels said last that it is
  Clock::time_point next_ask_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_POOL_H_
