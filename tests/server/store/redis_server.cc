#include "tests/server/store/redis_server.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <utility>

namespace stowage::testing {
namespace {

class RedisIsThere final : public ::testing::Environment {
 public:
  void SetUp() override {
    if (!RedisServer::IsInstalled()) {
      GTEST_SKIP() << "SKIPPED: no redis-server is installed (deploy/setup --tests does that)";
    }
  }
};

}  // namespace

RedisServer::RedisServer(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
  Start();
}

RedisServer::~RedisServer() = default;

bool RedisServer::IsInstalled() { return access(REDIS_SERVER_BINARY, X_OK) == 0; }

void RedisServer::Start() {
  std::vector<std::string> arguments = {REDIS_SERVER_BINARY,
                                        "--port",
                                        "0",
                                        "--unixsocket",
                                        address().host_or_path,
                                        "--dir",
                                        folder_.path(),
                                        "--save",
                                        "",
                                        "--appendonly",
                                        "no"};
  arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
  process_ = std::make_unique<ChildProcess>(arguments);
  const std::string output = process_->ReadUntil("ready to accept connections");
  if (output.find("ready to accept") == std::string::npos) {
    std::cerr << "redis-server did not start:\n" << output;
    std::abort();
  }
}

void RedisServer::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

void RedisServer::Freeze() { process_->Signal(SIGSTOP); }

void RedisServer::Thaw() { process_->Signal(SIGCONT); }

RedisAddress RedisServer::address() const {
  RedisAddress address;
  address.host_or_path = folder_ / "socket";
  return address;
}

RedisOptions RedisServer::options() const {
  RedisOptions options;
  options.address = address();
  options.timeout = std::chrono::seconds(10);
  return options;
}

std::shared_ptr<RedisPool> RedisServer::Pool() const {
  return std::make_shared<RedisPool>(options());
}

RedisReply RedisServer::Ask(const RedisCommand& command) const {
  const auto deadline = RedisConnection::Clock::now() + std::chrono::seconds(10);
  auto connection = RedisConnection::Open(address(), deadline);
  if (!connection.ok()) std::abort();
  auto replies = (*connection)->Run({command}, deadline, size_t{64} << 20);
  if (!replies.ok()) std::abort();
  return std::move(replies->front());
}

void SkipWithoutRedis() { ::testing::AddGlobalTestEnvironment(new RedisIsThere); }

}  // namespace stowage::testing
