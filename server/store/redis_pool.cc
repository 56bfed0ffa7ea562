#include "server/store/redis_pool.h"

#include <algorithm>
#include <string>
#include <utility>

namespace stowage {
namespace {

constexpr std::chrono::seconds kAskEvery{1};

bool IsRefusedByReplica(const std::vector<RedisReply>& replies) {
  return std::any_of(replies.begin(), replies.end(), [](const RedisReply& reply) {
    return reply.kind == RedisReply::Kind::kError && reply.text == kReplicaRefuses;
  });
}

// Of the server: one that does not pass the check serves nobody, too.
bool IsFailure(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsFailedPrecondition(status);
}

// A server of a cluster that has not, or not all of, what it is asked for.
bool IsSentOn(const RedisReply& reply) {
  return reply.kind == RedisReply::Kind::kError &&
         (reply.text == "MOVED" || reply.text == "ASK" || reply.text == "TRYAGAIN");
}

}  // namespace

RedisPool::RedisPool(const RedisOptions& options)
    : options_(options),
      breaker_(options.breaker),
      sentinels_(options.address.sentinels.empty()
                     ? nullptr
                     : std::make_unique<RedisSentinels>(options.address, options.names)) {}

absl::StatusOr<std::vector<RedisReply>> RedisPool::Run(const std::vector<RedisCommand>& commands) {
  const Clock::time_point start = Clock::now();
  const CircuitBreaker::Pass pass = breaker_.Admit(start);
  if (pass == CircuitBreaker::Pass::kNo) {
    return absl::UnavailableError("Redis is left alone for a while after it failed");
  }
  const Clock::time_point deadline = start + options_.timeout;
  Connection connection;
  if (!Take(deadline, &connection)) {
    breaker_.NotTried(pass);
    return absl::UnavailableError("all connections to Redis are in use");
  }
  absl::StatusOr<std::vector<RedisReply>> replies = RunOn(&connection, commands, deadline);
  if (!replies.ok()) connection.reset();
  GiveBack(std::move(connection));
  if (IsFailure(replies.status())) {
    breaker_.Failed(Clock::now());
  } else {
    breaker_.Succeeded();
  }
  Tell(replies.status());
  return replies;
}

void RedisPool::Tell(const absl::Status& status) {
  const bool now = resting();
  if (options_.metrics != nullptr) options_.metrics->RedisResting(options_.use, now);
  // Whoever failed says why.
  if ((now && status.ok()) || told_resting_.exchange(now) == now || options_.log == nullptr) return;
  options_.log->Write(now ? LogLevel::kWarning : LogLevel::kInfo, now ? "redis_away" : "redis_back",
                      [&](LogLine* line) {
                        // Of a socket, or of what sentinels name, the URL says more.
                        if (options_.in_cluster) line->Add("host", host());
                        if (options_.use != RedisUse::kCache) {
                          line->Add("of", ToString(options_.use));
                        }
                        if (now) line->Add("reason", std::string(status.message()));
                      });
}

absl::StatusOr<std::vector<RedisReply>> RedisPool::RunOn(Connection* connection,
                                                         const std::vector<RedisCommand>& commands,
                                                         Clock::time_point deadline) {
  // One that rested may have been closed meanwhile, by a restart or an idle limit.
  const bool rested =
      *connection != nullptr && (*connection)->IsQuiet() && !HasLostItsPlace(deadline);
  if (!rested) {
    if (absl::Status opened = Open(connection, deadline); !opened.ok()) return opened;
  }
  auto replies = (*connection)->Run(commands, deadline, options_.largest_reply);
  if (!replies.ok()) return replies;
  // It rested while its server became a replica: the address may lead to the new primary by now. What
  // was refused was not done, and all that we send may be sent twice.
  if (rested && IsRefusedByReplica(*replies)) {
    DropResting();
    if (absl::Status opened = Open(connection, deadline); !opened.ok()) return opened;
    replies = (*connection)->Run(commands, deadline, options_.largest_reply);
    if (!replies.ok()) return replies;
  }
  for (const RedisReply& reply : *replies) {
    if (options_.in_cluster && IsSentOn(reply)) continue;
    if (absl::Status status = StatusOf(reply); absl::IsUnavailable(status)) return status;
  }
  return replies;
}

absl::Status RedisPool::Open(Connection* connection, Clock::time_point deadline) {
  const absl::Status connected = Connect(connection, deadline);
  if (!connected.ok() || !options_.check) return connected;
  return options_.check(connection->get(), deadline);
}

absl::Status RedisPool::Connect(Connection* connection, Clock::time_point deadline) {
  if (sentinels_) {
    auto primary = sentinels_->Connect(deadline);
    if (!primary.ok()) return primary.status();
    NotePrimary(primary->where);
    *connection = std::move(primary->connection);
    return absl::OkStatus();
  }
  auto opened = RedisConnection::Open(options_.address, deadline, options_.names);
  if (!opened.ok()) return opened.status();
  *connection = *std::move(opened);
  return absl::OkStatus();
}

void RedisPool::NotePrimary(const std::string& where) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (primary_ == where) return;
    const bool is_first = primary_.empty();
    primary_ = where;
    next_ask_ = Clock::now() + kAskEvery;
    if (is_first) return;
  }
  ++failovers_;
  DropResting();
}

bool RedisPool::HasLostItsPlace(Clock::time_point deadline) {
  if (!sentinels_) return false;
  const Clock::time_point now = Clock::now();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (now < next_ask_) return false;
    next_ask_ = now + kAskEvery;
  }
  // Sentinels that do not answer leave the call most of its time.
  const absl::StatusOr<std::string> where = sentinels_->Where(now + (deadline - now) / 4);
  if (!where.ok()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  return *where != primary_;
}

void RedisPool::DropResting() {
  std::vector<Connection> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  dropped.swap(resting_);
}

bool RedisPool::Take(Clock::time_point deadline, Connection* connection) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool free =
      freed_.wait_until(lock, deadline, [this] { return taken_ < options_.connections; });
  if (!free) return false;
  ++taken_;
  if (!resting_.empty()) {
    // The one used last: what is not needed rests until the server closes it.
    *connection = std::move(resting_.back());
    resting_.pop_back();
  }
  return true;
}

void RedisPool::GiveBack(Connection connection) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    --taken_;
    if (connection) resting_.push_back(std::move(connection));
  }
  freed_.notify_one();
}

absl::StatusOr<std::vector<RedisClient::Replies>> RedisPool::RunOnAll(
    const std::vector<RedisCommand>& commands) {
  absl::StatusOr<Replies> replies = Run(commands);
  if (!replies.ok()) return replies.status();
  return std::vector<Replies>{*std::move(replies)};
}

}  // namespace stowage
