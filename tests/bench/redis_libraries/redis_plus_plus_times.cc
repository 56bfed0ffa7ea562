// GETs through redis-plus-plus. Compiled by `run` alone, against the sources that it is given.
#include <sw/redis++/redis++.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/bench/redis_libraries/ask_times.h"

int main(int argc, char** argv) {
  using stowage::testing::GotValue;
  return stowage::testing::AskTimes(argc, argv, [](int port, std::chrono::milliseconds timeout) {
    sw::redis::ConnectionOptions options;
    options.host = "127.0.0.1";
    options.port = port;
    options.connect_timeout = timeout;
    options.socket_timeout = timeout;
    const auto redis = std::make_shared<sw::redis::Redis>(options);
    return [redis](const std::string& key) -> GotValue {
      try {
        const auto value = redis->get(key);
        if (!value) return {};
        return {true, value->size()};
      } catch (const sw::redis::Error&) {
        return {};
      }
    };
  });
}
