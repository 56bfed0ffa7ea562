// GETs through the client of server/store.
#include <chrono>
#include <memory>
#include <string>

#include "server/store/redis_pool.h"
#include "tests/bench/redis_libraries/ask_times.h"

int main(int argc, char** argv) {
  using stowage::testing::GotValue;
  return stowage::testing::AskTimes(argc, argv, [](int port, std::chrono::milliseconds timeout) {
    stowage::RedisOptions options;
    options.address.host_or_path = "127.0.0.1";
    options.address.port = port;
    options.timeout = timeout;
    const auto redis = std::make_shared<stowage::RedisPool>(options);
    return [redis](const std::string& key) -> GotValue {
      const auto replies = redis->Run({{"GET", key}});
      if (!replies.ok() || replies->front().kind != stowage::RedisReply::Kind::kText) return {};
      return {true, replies->front().text.size()};
    };
  });
}
