#include "tests/bench/load/sentinel_faults.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kPrimary[] = "plans";  // as testing::RedisSentinel calls it
constexpr int kSentinels = 3;
constexpr int kQuorum = 2;
constexpr milliseconds kAnswer(2000);
// Sentinels whose machine is busy wait half a minute before they trust their clocks again.
constexpr seconds kPatience(120);

RedisAddress AddressOf(const testing::RedisSentinel& sentinel) {
  RedisAddress address;
  address.host_or_path = sentinel.host().host;
  address.port = sentinel.host().port;
  return address;
}

absl::StatusOr<RedisReply> AskSentinel(const testing::RedisSentinel& sentinel,
                                       const std::string& what) {
  return testing::TryAskAt(AddressOf(sentinel), {"SENTINEL", what, kPrimary}, kAnswer);
}

// Of a list of names, each before its value.
std::string ValueOf(const RedisReply& fields, const std::string& name) {
  for (size_t i = 0; i + 1 < fields.list.size(); i += 2) {
    if (fields.list[i].text == name) return fields.list[i + 1].text;
  }
  return "";
}

// The first word of the reply to ROLE.
std::string RoleIn(const absl::StatusOr<RedisReply>& reply) {
  return reply.ok() && !reply->list.empty() ? reply->list.front().text : "";
}

}  // namespace

SentinelFaults::SentinelFaults() : ports_{testing::FreePort(), testing::FreePort()} {
  servers_[0] = std::make_unique<testing::RedisServer>(testing::ReplicatedAt(ports_[0]));
  servers_[1] = std::make_unique<testing::RedisServer>(
      testing::ReplicatedAt(ports_[1], {"--replicaof", "127.0.0.1", std::to_string(ports_[0])}));
  for (int i = 0; i < kSentinels; ++i) {
    sentinels_.push_back(std::make_unique<testing::RedisSentinel>(ports_[0], kQuorum));
  }
}

std::string SentinelFaults::flag() const {
  std::vector<std::string> hosts;
  for (const auto& sentinel : sentinels_) {
    hosts.push_back(absl::StrCat(sentinel->host().host, ":", sentinel->host().port));
  }
  return absl::StrCat("--redis=redis+sentinel://", absl::StrJoin(hosts, ","), "/", kPrimary);
}

absl::StatusOr<RedisReply> SentinelFaults::AskServer(size_t server,
                                                     const RedisCommand& command) const {
  return testing::TryAskAt(servers_[server]->address(), command, kAnswer);
}

// That all sentinels name, and that says so itself.
std::optional<size_t> SentinelFaults::Primary() const {
  std::optional<std::string> port;
  for (const auto& sentinel : sentinels_) {
    const auto named = AskSentinel(*sentinel, "GET-MASTER-ADDR-BY-NAME");
    if (!named.ok() || named->list.size() != 2) return std::nullopt;
    if (port && *port != named->list[1].text) return std::nullopt;
    port = named->list[1].text;
  }
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (port != std::to_string(ports_[i])) continue;
    if (RoleIn(AskServer(i, {"ROLE"})) == "master") return i;
  }
  return std::nullopt;
}

// ROLE: "master", offset, replicas; "slave", host, port of the primary, state of the link, offset.
bool SentinelFaults::HasReplica(size_t server) const {
  const auto role = AskServer(server, {"ROLE"});
  const auto other = AskServer(1 - server, {"ROLE"});
  const bool has = RoleIn(role) == "master" && role->list.size() > 2 && !role->list[2].list.empty();
  return has && RoleIn(other) == "slave" && other->list.size() > 3 &&
         other->list[3].text == "connected";
}

// The replica, as one that it could promote; and the other sentinels, which it takes to agree.
bool SentinelFaults::IsKnownTo(const testing::RedisSentinel& sentinel) const {
  const auto replicas = AskSentinel(sentinel, "REPLICAS");
  const auto others = AskSentinel(sentinel, "SENTINELS");
  if (!replicas.ok() || replicas->list.size() != 1 || !others.ok()) return false;
  return ValueOf(replicas->list[0], "flags") == "slave" &&
         ValueOf(replicas->list[0], "master-link-status") == "ok" &&
         others->list.size() + 1 == sentinels_.size();
}

std::optional<size_t> SentinelFaults::WholePrimary() const {
  const std::optional<size_t> primary = Primary();
  const bool whole = primary && HasReplica(*primary) &&
                     std::all_of(sentinels_.begin(), sentinels_.end(),
                                 [this](const auto& sentinel) { return IsKnownTo(*sentinel); });
  return whole ? primary : std::nullopt;
}

absl::Status SentinelFaults::Await(const std::function<bool()>& holds, const std::string& what) {
  const Clock::time_point end = Clock::now() + kPatience;
  while (!holds()) {
    if (Clock::now() > end) return absl::DeadlineExceededError(what);
    DropOutput();
    std::this_thread::sleep_for(milliseconds(50));
  }
  DropOutput();
  return absl::OkStatus();
}

absl::StatusOr<size_t> SentinelFaults::AwaitWholePrimary() {
  std::optional<size_t> primary;
  const absl::Status status = Await(
      [&] {
        primary = WholePrimary();
        return primary.has_value();
      },
      "the sentinels have no primary with a replica");
  if (!status.ok()) return status;
  return *primary;
}

absl::Status SentinelFaults::AwaitWhole() { return AwaitWholePrimary().status(); }

absl::Status SentinelFaults::AwaitPrimary(size_t server) {
  return Await([this, server] { return Primary() == server; }, "the sentinels promote no replica");
}

absl::Status SentinelFaults::FailOver() {
  const absl::StatusOr<size_t> primary = AwaitWholePrimary();
  if (!primary.ok()) return primary.status();
  servers_[*primary]->Kill();
  const absl::Status status = AwaitPrimary(1 - *primary);
  servers_[*primary]->Start();
  return status;
}

absl::Status SentinelFaults::Next() {
  const absl::StatusOr<size_t> primary = AwaitWholePrimary();
  if (!primary.ok()) return primary.status();
  constexpr int kSteps = 3;
  switch (step_++ % kSteps) {
    case 0:
      return FreezePrimary(*primary);
    case 1:
      return Empty();
    default:
      return FreezeBoth();
  }
}

absl::Status SentinelFaults::Empty() {
  const absl::StatusOr<size_t> primary = AwaitWholePrimary();
  if (!primary.ok()) return primary.status();
  return AskServer(*primary, {"FLUSHALL"}).status();
}

absl::Status SentinelFaults::FreezePrimary(size_t primary) {
  servers_[primary]->Freeze();
  const absl::Status status = AwaitPrimary(1 - primary);
  servers_[primary]->Thaw();
  return status;
}

absl::Status SentinelFaults::FreezeBoth() {
  for (const auto& server : servers_) server->Freeze();
  std::this_thread::sleep_for(seconds(5));
  for (const auto& server : servers_) server->Thaw();
  return absl::OkStatus();
}

void SentinelFaults::DropOutput() {
  for (const auto& server : servers_) server->DropOutput();
  for (const auto& sentinel : sentinels_) sentinel->DropOutput();
}

}  // namespace stowage
