#include "tests/server/store/redis_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
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

void RedisServer::DropOutput() { process_->DropOutput(); }

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

RedisReply RedisServer::Ask(const RedisCommand& command) const { return AskAt(address(), command); }

int FreePort() {
  // Stays bound, and does not listen: nobody else is given the port, and Redis, which asks for it by
  // number and with SO_REUSEADDR, has it.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  if (bind(listener, reinterpret_cast<sockaddr*>(&name), size) != 0) std::abort();
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&name), &size) != 0) std::abort();
  return ntohs(name.sin_port);
}

std::vector<std::string> ReplicatedAt(int port, std::vector<std::string> arguments) {
  for (const char* argument : {"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1",
                               "--bind", "127.0.0.1", "--port"}) {
    arguments.push_back(argument);
  }
  arguments.push_back(std::to_string(port));
  return arguments;
}

std::vector<std::string> Durable(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"--appendonly", "yes", "--appendfsync", "always"};
  for (const char* argument :
       {"--no-appendfsync-on-rewrite", "no", "--maxmemory-policy", "noeviction"}) {
    arguments.push_back(argument);
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

RedisSentinel::RedisSentinel(int primary_port, int quorum, const std::string& settings)
    : port_(FreePort()) {
  std::ofstream(folder_ / "sentinel.conf")
      << (settings.find("tls-") == std::string::npos ? "port " : "port 0\ntls-port ") << port_
      << "\nbind 127.0.0.1\ndir " << folder_.path() << "\nsentinel monitor plans 127.0.0.1 "
      << primary_port << " " << quorum
      << "\nsentinel down-after-milliseconds plans 500\nsentinel failover-timeout plans 3000\n"
      << settings;
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{REDIS_SERVER_BINARY, folder_ / "sentinel.conf", "--sentinel"});
  const std::string output = process_->ReadUntil("+monitor master plans");
  if (output.find("+monitor master") == std::string::npos) {
    std::cerr << "redis-server --sentinel did not start:\n" << output;
    std::abort();
  }
}

void RedisSentinel::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

void RedisSentinel::DropOutput() { process_->DropOutput(); }

absl::StatusOr<RedisReply> TryAskAt(const RedisAddress& address, const RedisCommand& command,
                                    std::chrono::milliseconds patience) {
  const auto deadline = RedisConnection::Clock::now() + patience;
  auto connection = RedisConnection::Open(address, deadline);
  if (!connection.ok()) return connection.status();
  auto replies = (*connection)->Run({command}, deadline, size_t{64} << 20);
  if (!replies.ok()) return replies.status();
  return std::move(replies->front());
}

RedisReply AskAt(const RedisAddress& address, const RedisCommand& command) {
  auto reply = TryAskAt(address, command, std::chrono::seconds(10));
  if (!reply.ok()) std::abort();
  return *std::move(reply);
}

void SkipWithoutRedis() { ::testing::AddGlobalTestEnvironment(new RedisIsThere); }

}  // namespace stowage::testing
