#include "server/cache/redis_plan_store.h"

#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/cache/entry_codec.h"

namespace stowage {
namespace {

// KEYS: plan, gone. ARGV: generation, bytes, milliseconds to live, changes per history, rule: the
// generation that must be there (0 for nothing), or "copy". 0: the rule forbids it. Numbers of Lua
// are exact up to 2^53. Redis checks its memory limit at a script's first write only, so nothing is
// deleted needlessly before the large one.
constexpr char kWrite[] = R"(
local kind = redis.call('TYPE', KEYS[1]).ok
local there = kind == 'hash' and tonumber(redis.call('HGET', KEYS[1], 'g') or '') or 0
if ARGV[5] == 'copy' then
  local new, changes = tonumber(ARGV[1]), tonumber(ARGV[4])
  local newer = new > there and math.floor(new / changes) == math.floor(there / changes)
  if there ~= 0 and not newer then return 0 end
  if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
elseif there ~= tonumber(ARGV[5]) then
  return 0
end
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], 'g', ARGV[1], 'v', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('DEL', KEYS[2])
return 1
)";

constexpr char kCopyRule[] = "copy";

// KEYS: plan, gone. ARGV: milliseconds to remember it. The note comes after what frees memory, so
// that a full server takes it.
constexpr char kErase[] = R"(
local erased = redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], '1', 'PX', ARGV[1])
return erased
)";

// KEYS: plan. ARGV: the generation that was read, or nothing.
constexpr char kDiscard[] = R"(
if redis.call('TYPE', KEYS[1]).ok == 'hash' and
   (redis.call('HGET', KEYS[1], 'g') or '') ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
)";

std::string Milliseconds(std::chrono::milliseconds time) { return absl::StrCat(time.count()); }

bool IsInteger(const RedisReply& reply) { return reply.kind == RedisReply::Kind::kInteger; }

// The number after `name` in what INFO says; 0 without one.
int64_t FieldOf(const std::string& info, const std::string& name) {
  const size_t at = info.find(name + ":");
  if (at == std::string::npos) return 0;
  const size_t start = at + name.size() + 1;
  int64_t value = 0;
  return absl::SimpleAtoi(info.substr(start, info.find('\r', start) - start), &value) ? value : 0;
}

}  // namespace

RedisPlanStore::RedisPlanStore(const RedisStoreOptions& options, std::shared_ptr<RedisPool> pool,
                               ServerMetrics* metrics)
    : options_(options), keys_(options.prefix), pool_(std::move(pool)), metrics_(metrics) {}

PlanAnswer RedisPlanStore::Failed(CacheFailure failure) {
  metrics_->CacheFailed(CacheTier::kRedis, failure);
  return PlanAnswer{nullptr,
                    failure == CacheFailure::kUnavailable ? Absence::kFailed : Absence::kUnknown};
}

std::shared_ptr<const PlanEntry> RedisPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer RedisPlanStore::Look(const PlanKey& key, Access access) {
  const std::string name = keys_.Plan(key);
  std::vector<RedisCommand> commands = {{"HMGET", name, "g", "v"}};
  if (access == Access::kLookup) commands.push_back({"PTTL", name});
  auto replies = pool_->Run(commands);
  if (absl::IsResourceExhausted(replies.status())) {
    const auto generation = pool_->Run({{"HGET", name, "g"}});
    if (generation.ok()) Discard(key, generation->front().text);
    return Failed(CacheFailure::kCorrupt);
  }
  if (!replies.ok()) return Failed(CacheFailure::kUnavailable);
  RedisReply& found = replies->front();
  if (found.kind != RedisReply::Kind::kList || found.list.size() != 2) {
    Discard(key, "");
    return Failed(CacheFailure::kCorrupt);
  }
  if (found.list[0].kind == RedisReply::Kind::kNothing &&
      found.list[1].kind == RedisReply::Kind::kNothing) {
    return Absent(key);
  }
  PlanAnswer answer = Decoded(key, found.list[0].text, std::move(found.list[1].text));
  if (answer.entry && access == Access::kLookup && IsInteger((*replies)[1]) &&
      (*replies)[1].integer < options_.time_to_live.count() / 2) {
    Renew(key);
  }
  return answer;
}

PlanAnswer RedisPlanStore::Decoded(const PlanKey& key, const std::string& generation,
                                   std::string bytes) {
  auto entry = DecodeEntry(key, std::move(bytes));
  int64_t beside = 0;
  if (entry.ok() && absl::SimpleAtoi(generation, &beside) && (*entry)->generation == beside) {
    return PlanAnswer{*std::move(entry)};
  }
  Discard(key, generation);
  return Failed(entry.ok() ? CacheFailure::kCorrupt : FailureOf(entry.status()));
}

PlanAnswer RedisPlanStore::Absent(const PlanKey& key) {
  const auto gone = pool_->Run({{"EXISTS", keys_.Gone(key)}});
  if (!gone.ok()) return Failed(CacheFailure::kUnavailable);
  return PlanAnswer{nullptr, gone->front().integer == 1 ? Absence::kErased : Absence::kUnknown};
}

void RedisPlanStore::Renew(const PlanKey& key) {
  // On a replica or a full disk it fails, and the entry expires when it would have.
  pool_->Run({{"PEXPIRE", keys_.Plan(key), Milliseconds(options_.time_to_live)}})
      .status()
      .IgnoreError();
}

void RedisPlanStore::Discard(const PlanKey& key, const std::string& generation) {
  pool_->Run({{"EVAL", kDiscard, "1", keys_.Plan(key), generation}}).status().IgnoreError();
}

std::optional<std::shared_ptr<const PlanEntry>> RedisPlanStore::GetNow(const PlanKey&, Access) {
  return std::nullopt;
}

absl::Status RedisPlanStore::Replace(const PlanKey& key, int64_t read,
                                     std::shared_ptr<const PlanEntry> entry, Durability) {
  return Write(key, std::move(entry), absl::StrCat(read));
}

absl::Status RedisPlanStore::Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) {
  return Write(key, std::move(entry), kCopyRule);
}

absl::Status RedisPlanStore::Write(const PlanKey& key, std::shared_ptr<const PlanEntry> entry,
                                   const std::string& rule) {
  auto fit = FitTo(options_.largest_entry, std::move(entry));
  if (!fit.ok()) return fit.status();
  const auto replies =
      pool_->Run({{"EVAL", kWrite, "2", keys_.Plan(key), keys_.Gone(key),
                   absl::StrCat(fit->entry->generation), EncodeEntry(*fit->entry),
                   Milliseconds(options_.time_to_live), absl::StrCat(kChangesPerHistory), rule}});
  if (!replies.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
    return replies.status();
  }
  if (absl::Status refused = StatusOf(replies->front()); !refused.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kNotWritten);
    return refused;
  }
  return replies->front().integer == 1 ? absl::OkStatus() : StaleGenerationError();
}

absl::StatusOr<bool> RedisPlanStore::Erase(const PlanKey& key) {
  const auto replies = pool_->Run({{"EVAL", kErase, "2", keys_.Plan(key), keys_.Gone(key),
                                    Milliseconds(options_.remember_erased)}});
  if (!replies.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
    return replies.status();
  }
  if (absl::Status refused = StatusOf(replies->front()); !refused.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kNotWritten);
    return absl::UnavailableError(refused.message());
  }
  return replies->front().integer == 1;
}

std::vector<PlanKey> RedisPlanStore::List(const std::optional<PlanKey>& after, size_t limit) {
  std::set<PlanKey> least;
  std::string cursor = "0";
  // A server that is broken may never come to an end.
  const auto deadline = std::chrono::steady_clock::now() + options_.list_time;
  do {
    const auto replies =
        pool_->Run({{"SCAN", cursor, "MATCH", keys_.PlanPattern(), "COUNT", "1000"}});
    const bool page = replies.ok() && replies->front().kind == RedisReply::Kind::kList &&
                      replies->front().list.size() == 2;
    if (!page || std::chrono::steady_clock::now() > deadline) {
      metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
      return {};
    }
    cursor = replies->front().list[0].text;
    for (const RedisReply& name : replies->front().list[1].list) {
      const std::optional<PlanKey> key = keys_.ParsePlan(name.text);
      if (!key || (after && !(*after < *key))) continue;
      least.insert(*key);
      if (least.size() > limit) least.erase(std::prev(least.end()));
    }
  } while (cursor != "0");
  return {least.begin(), least.end()};
}

PlanStoreStats RedisPlanStore::stats() const {
  std::lock_guard<std::mutex> lock(stats_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (stats_time_ && now < *stats_time_ + options_.stats_age) return stats_;
  // Of a server that does not answer: what it said last.
  stats_time_ = now;
  const auto replies = pool_->Run({{"DBSIZE"}, {"INFO", "memory"}});
  if (!replies.ok()) return stats_;
  stats_.entries = replies->front().integer;
  stats_.charged = Bytes(FieldOf(replies->back().text, "used_memory"));
  return stats_;
}

}  // namespace stowage
