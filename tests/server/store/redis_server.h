// A redis-server of the test's own, on a unix socket (and a TCP port, if asked for) in a folder of
// its own.
#ifndef STOWAGE_TESTS_SERVER_STORE_REDIS_SERVER_H_
#define STOWAGE_TESTS_SERVER_STORE_REDIS_SERVER_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/redis_connection.h"
#include "server/store/redis_pool.h"
#include "tests/server/process/child_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {

// Not thread-safe.
class RedisServer {
 public:
  // Running, and empty; arguments as for redis-server.
  explicit RedisServer(std::vector<std::string> arguments = {});
  ~RedisServer();

  // Whether there is a redis-server to run.
  static bool IsInstalled();

  void Start();
  void Kill();
  void Freeze();
  void Thaw();
  // Of what it says: see ChildProcess.
  void DropOutput();

  RedisAddress address() const;
  // With patience, so that a busy machine is no failure.
  RedisOptions options() const;
  std::shared_ptr<RedisPool> Pool() const;
  // Waits for its answer; aborts without one.
  RedisReply Ask(const RedisCommand& command) const;

 private:
  const TemporaryFolder folder_;  // outlives the process
  const std::vector<std::string> arguments_;
  std::unique_ptr<ChildProcess> process_;
};

// A port of 127.0.0.1 that was free a moment ago.
int FreePort();

// The arguments of a server that takes its part in replication without delays, on that port.
std::vector<std::string> ReplicatedAt(int port, std::vector<std::string> arguments = {});

// The arguments of a server that --decisions_redis takes (durable_redis.h); those of `more` win.
std::vector<std::string> Durable(const std::vector<std::string>& more = {});

// A sentinel of the primary called "plans", which finds it dead within half a second once `quorum`
// sentinels do. Not thread-safe.
class RedisSentinel {
 public:
  // `settings`: more lines of its configuration.
  RedisSentinel(int primary_port, int quorum, const std::string& settings = "");

  void Kill();
  void DropOutput();
  RedisHost host() const { return {"127.0.0.1", port_}; }

 private:
  const TemporaryFolder folder_;
  const int port_;
  std::unique_ptr<ChildProcess> process_;
};

// The one reply of the server at that address. UNAVAILABLE: it is not there, or gives none in time.
absl::StatusOr<RedisReply> TryAskAt(const RedisAddress& address, const RedisCommand& command,
                                    std::chrono::milliseconds patience);
// The same, with patience. Aborts without one.
RedisReply AskAt(const RedisAddress& address, const RedisCommand& command);

// Skips all tests of the binary, and says so, where there is no redis-server.
void SkipWithoutRedis();

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_REDIS_SERVER_H_
