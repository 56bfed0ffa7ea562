// What passes slowly, and what does not pass, from a server that says what the test wants.
#include "server/store/redis_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/temporary_folder.h"

namespace stowage::testing {
namespace {

using Clock = RedisConnection::Clock;
using std::chrono::milliseconds;

// Answers its one client.
class Answering {
 public:
  // `answer` sends to the file descriptor once it was asked something.
  explicit Answering(std::function<void(int client)> answer)
      : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    address.host_or_path = folder_ / "socket";
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    address.host_or_path.copy(name.sun_path, sizeof name.sun_path - 1);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) std::abort();
    if (listen(listener_, 1) != 0) std::abort();
    thread_ = std::thread([this, answer = std::move(answer)] {
      const int client = accept(listener_, nullptr, nullptr);
      char byte = 0;
      if (read(client, &byte, 1) == 1) answer(client);
      close(client);
    });
  }
  ~Answering() {
    thread_.join();
    close(listener_);
  }

  RedisAddress address;

 private:
  const TemporaryFolder folder_;
  const int listener_;
  std::thread thread_;
};

bool Say(int client, const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t now = send(client, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

absl::StatusOr<std::vector<RedisReply>> Ask(const RedisAddress& address, milliseconds timeout) {
  auto connection = RedisConnection::Open(address, Clock::now() + std::chrono::seconds(10));
  if (!connection.ok()) return connection.status();
  return (*connection)->Run({{"GET", "x"}}, Clock::now() + timeout, size_t{64} << 20);
}

// Redis 6 says what a script ran into within an error of its own; Redis 7 says it first.
TEST(RedisConnection, AnErrorInAScriptIsWhatTheCommandSaid) {
  const std::pair<const char*, const char*> cases[] = {
      {"READONLY You can't write against a read only replica.", "READONLY"},
      {"READONLY You can't write against a read only replica. script: ab, on @user_script:9.",
       "READONLY"},
      {"ERR Error running script (call to f_ab): @user_script:9: @user_script: 9: -READONLY You "
       "can't write against a read only replica.",
       "READONLY"},
      {"ERR Error running script (call to f_ab): @user_script: 4: -OOM command not allowed when "
       "used memory > 'maxmemory'.",
       "OOM"},
      {"ERR Error running script (call to f_ab): @user_script:1: user_script:1: attempt to index",
       "ERR"},
      {"ERR wrong number of arguments", "ERR"},
  };
  for (const auto& [said, word] : cases) {
    Answering server([said = std::string(said)](int client) { Say(client, "-" + said + "\r\n"); });
    const auto replies = Ask(server.address, std::chrono::seconds(10));
    ASSERT_TRUE(replies.ok()) << replies.status();
    EXPECT_EQ(replies->front().kind, RedisReply::Kind::kError);
    EXPECT_EQ(replies->front().text, word) << said;
  }
}

// 8 MiB in a quarter of a second: 32 MiB/s.
TEST(RedisConnection, ALargeReplyThatGoesOnPassing) {
  constexpr size_t kChunks = 64, kChunk = size_t{512} << 10;
  Answering server([](int client) {
    Say(client, absl::StrCat("$", kChunks * kChunk, "\r\n"));
    for (size_t i = 0; i < kChunks; ++i) {
      std::this_thread::sleep_for(milliseconds(20));  // 1.3 s in all, 5 s are allowed
      Say(client, std::string(kChunk, 'x'));
    }
    Say(client, "\r\n");
  });
  const auto replies = Ask(server.address, milliseconds(1000));
  ASSERT_TRUE(replies.ok()) << replies.status();
  EXPECT_EQ(replies->front().text.size(), kChunks * kChunk);
}

TEST(RedisConnection, ATrickleEndsAtTheDeadline) {
  Answering server([](int client) {
    Say(client, "$1000000\r\n");
    while (Say(client, "x")) std::this_thread::sleep_for(milliseconds(1));
  });
  const Clock::time_point start = Clock::now();
  EXPECT_TRUE(absl::IsUnavailable(Ask(server.address, milliseconds(100)).status()));
  EXPECT_GE(Clock::now() - start, milliseconds(100));
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(2));
}

}  // namespace
}  // namespace stowage::testing
