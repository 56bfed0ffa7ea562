#include "server/store/redis_sentinel.h"

#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kSmallAnswer = 4096;

std::string TextOf(const RedisHost& host) { return absl::StrCat(host.host, " ", host.port); }

}  // namespace

absl::StatusOr<RedisHost> RedisSentinels::Ask(const RedisHost& sentinel,
                                              Clock::time_point deadline) const {
  RedisAddress address;
  address.host_or_path = sentinel.host;
  address.port = sentinel.port;
  address.user = address_.sentinel_user;
  address.password = address_.sentinel_password;
  address.password_file = address_.sentinel_password_file;
  address.tls = address_.tls;
  const auto connection = RedisConnection::Open(address, deadline, names_);
  if (!connection.ok()) return connection.status();
  const auto replies = (*connection)
                           ->Run({{"SENTINEL", "get-master-addr-by-name", address_.primary}},
                                 deadline, kSmallAnswer);
  if (!replies.ok()) return replies.status();
  const RedisReply& said = replies->front();
  if (absl::Status status = StatusOf(said); !status.ok()) {
    return absl::UnavailableError(absl::StrCat("a sentinel refuses to say: ", status.message()));
  }
  RedisHost primary;
  if (said.kind != RedisReply::Kind::kList || said.list.size() != 2 || said.list[0].text.empty() ||
      !absl::SimpleAtoi(said.list[1].text, &primary.port) || primary.port < 1 ||
      primary.port > 65535) {
    return absl::UnavailableError("a sentinel of Redis knows no primary of that name");
  }
  primary.host = said.list[0].text;
  return primary;
}

absl::StatusOr<RedisHost> RedisSentinels::AskAll(Clock::time_point deadline) {
  const size_t count = address_.sentinels.size();
  const size_t first = first_;
  absl::Status last;
  for (size_t i = 0; i < count; ++i) {
    const size_t asked = (first + i) % count;
    const Clock::time_point now = Clock::now();
    // One share is the primary's.
    const auto share = (deadline - now) / static_cast<int>(count - i + 1);
    absl::StatusOr<RedisHost> primary = Ask(address_.sentinels[asked], now + share);
    if (primary.ok()) {
      first_ = asked;
      return primary;
    }
    last = primary.status();
  }
  return absl::UnavailableError(
      absl::StrCat("no sentinel of Redis names the primary; the last one: ", last.message()));
}

absl::StatusOr<RedisSentinels::Primary> RedisSentinels::Connect(Clock::time_point deadline) {
  const absl::StatusOr<RedisHost> host = AskAll(deadline);
  if (!host.ok()) return host.status();
  RedisAddress address = address_;
  address.host_or_path = host->host;
  address.port = host->port;
  auto connection = RedisConnection::Open(address, deadline, names_);
  if (!connection.ok()) return connection.status();
  const auto replies = (*connection)->Run({{"ROLE"}}, deadline, kSmallAnswer);
  if (!replies.ok()) return replies.status();
  const RedisReply& role = replies->front();
  if (absl::Status status = StatusOf(role); !status.ok()) {
    return absl::UnavailableError(status.message());
  }
  if (role.list.empty() || role.list.front().text != "master") {
    return absl::UnavailableError("what the sentinels of Redis name is no primary now");
  }
  return Primary{*std::move(connection), TextOf(*host)};
}

absl::StatusOr<std::string> RedisSentinels::Where(Clock::time_point deadline) {
  const absl::StatusOr<RedisHost> host = AskAll(deadline);
  if (!host.ok()) return host.status();
  return TextOf(*host);
}

}  // namespace stowage
