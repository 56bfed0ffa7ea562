// A primary of a test's own with a replica and three sentinels, which promote the replica once the primary is gone.
#ifndef STOWAGE_TESTS_SERVER_STORE_REDIS_FAILOVER_H_
#define STOWAGE_TESTS_SERVER_STORE_REDIS_FAILOVER_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/store/redis_client.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {

// False where it does not hold within 40 s.
inline bool Await(const std::function<bool()>& holds) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

class RedisFailover : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Await([this] { return HasReplica(*primary_); }));
    for (int i = 0; i < 3; ++i) sentinels_.push_back(std::make_unique<RedisSentinel>(port_, 2));
    for (const auto& sentinel : sentinels_) {
      ASSERT_TRUE(Await([&sentinel] { return Knows(*sentinel, "sentinels", 2); }));
      ASSERT_TRUE(Await([&sentinel] { return Knows(*sentinel, "replicas", 1); }));
    }
    options_.address.primary = "plans";
    for (const auto& sentinel : sentinels_) {
      options_.address.sentinels.push_back(sentinel->host());
    }
    options_.timeout = std::chrono::seconds(2);
    options_.breaker.longest_pause = std::chrono::milliseconds(200);
  }

  static bool IsPrimary(const RedisServer& server) {
    return server.Ask({"ROLE"}).list.front().text == "master";
  }
  // Connected, and has all that was written.
  static bool HasReplica(const RedisServer& server) {
    const RedisReply role = server.Ask({"ROLE"});
    if (role.list.front().text != "master" || role.list[2].list.empty()) return false;
    return server.Ask({"WAIT", "1", "5000"}).integer == 1;
  }
  static RedisReply AskSentinel(const RedisSentinel& sentinel, const RedisCommand& command) {
    RedisAddress address;
    address.host_or_path = sentinel.host().host;
    address.port = sentinel.host().port;
    return AskAt(address, command);
  }
  static bool Knows(const RedisSentinel& sentinel, const std::string& what, size_t count) {
    return AskSentinel(sentinel, {"SENTINEL", what, "plans"}).list.size() == count;
  }

  const int port_ = FreePort();
  std::unique_ptr<RedisServer> primary_ = std::make_unique<RedisServer>(ReplicatedAt(port_));
  RedisServer replica_{
      ReplicatedAt(FreePort(), {"--replicaof", "127.0.0.1", std::to_string(port_)})};
  std::vector<std::unique_ptr<RedisSentinel>> sentinels_;
  RedisOptions options_;  // of whoever asks the sentinels
  CountingMetrics metrics_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_REDIS_FAILOVER_H_
