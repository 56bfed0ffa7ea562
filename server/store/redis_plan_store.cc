#include "server/store/redis_plan_store.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/entries/entry_codec.h"
#include "server/store/redis_scan.h"

namespace stowage {
namespace {

// Puts `member` into the indexes from KEYS[`first`] on, each of which lives for so many milliseconds.
constexpr char kIndex[] = R"(
local function index(first, member, age)
  for i = first, #KEYS do
    local kind = redis.call('TYPE', KEYS[i]).ok
    if kind ~= 'zset' and kind ~= 'none' then redis.call('DEL', KEYS[i]) end
    redis.call('ZADD', KEYS[i], 0, member)
    if redis.call('PTTL', KEYS[i]) < 0 then redis.call('PEXPIRE', KEYS[i], age) end
  end
end
)";

// KEYS: plan, gone, indexes. ARGV: generation, bytes, milliseconds to live, changes per history, rule:
// the generation that must be there (0 for nothing), or "copy"; tenant, member of the indexes,
// milliseconds that these live, note of the time (UpdateNoteOf). 0: the rule forbids it. Numbers of Lua are exact up to 2^53. Redis
// checks its memory limit at a script's first write only, so nothing is deleted needlessly before the
// large one.
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
redis.call('HSET', KEYS[1], 'g', ARGV[1], 'v', ARGV[2], 't', ARGV[6], 'u', ARGV[9])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('DEL', KEYS[2])
index(3, ARGV[7], ARGV[8])
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

// KEYS: plan. ARGV: bytes of a seal. Generation and seal.
constexpr char kSeal[] = R"(
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return {'', ''} end
local fields = redis.call('HMGET', KEYS[1], 'g', 'v')
return {fields[1] or '', string.sub(fields[2] or '', -tonumber(ARGV[1]))}
)";

// KEYS: plan, indexes. ARGV: the generation that was read, tenant, member, milliseconds.
constexpr char kAdopt[] = R"(
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HGET', KEYS[1], 'g') ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 't', ARGV[2])
index(2, ARGV[3], ARGV[4])
return 1
)";

// The member of an index that lacks no plan, before all others.
constexpr char kCompleteMember[] = "!";

// KEYS: index. ARGV: "(" and the member after which the page starts, how many, what names of plans
// begin with. Nothing where the index may lack some; else where the next page starts ("" at the end),
// and the members whose plans are there. The others go: their plans have expired or were evicted. No
// more than a thousand of them at once: nobody else is served meanwhile.
constexpr char kPage[] = R"(
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' or not redis.call('ZSCORE', KEYS[1], '!') then
  return false
end
local start, limit, gone = ARGV[1], tonumber(ARGV[2]), 0
local page = {start}
while #page <= limit and gone < 1000 do
  local wanted = limit + 1 - #page
  local members = redis.call('ZRANGEBYLEX', KEYS[1], start, '+', 'LIMIT', 0, wanted)
  for _, member in ipairs(members) do
    local version, digest = string.match(member, '^0*(%d+):(%x+)$')
    if version and redis.call('EXISTS', ARGV[3] .. version .. ':' .. digest) == 1 then
      page[#page + 1] = member
    else
      gone = gone + 1
      redis.pcall('ZREM', KEYS[1], member)
    end
  end
  if #members < wanted then
    start = ''
    break
  end
  start = '(' .. members[#members]
end
page[1] = start
return page
)";

// KEYS: index. ARGV: milliseconds that it lives, members.
constexpr char kAddMembers[] = R"(
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'zset' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 0, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
)";

// KEYS: index. ARGV: a member that a walk has put into it before all others, milliseconds that it
// lives. Without that member the index was lost meanwhile, and others with it.
constexpr char kComplete[] = R"(
if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('ZADD', KEYS[1], 0, '!')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
)";

absl::Status ListTimeError() {
  return absl::UnavailableError("Redis does not come to the end of its keys");
}

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

RedisPlanStore::RedisPlanStore(const RedisStoreOptions& options, std::shared_ptr<RedisClient> redis,
                               ServerMetrics* metrics)
    : options_(options),
      keys_(options.prefix, options.keys != nullptr, redis->is_cluster()),
      redis_(std::move(redis)),
      metrics_(metrics) {}

PlanAnswer RedisPlanStore::Failed(CacheFailure failure) {
  metrics_->CacheFailed(CacheTier::kRedis, failure);
  return PlanAnswer{nullptr,
                    failure == CacheFailure::kUnavailable ? Absence::kFailed : Absence::kUnknown};
}

std::shared_ptr<const PlanEntry> RedisPlanStore::Get(const PlanKey& key, Access access) {
  return Look(key, access).entry;
}

PlanAnswer RedisPlanStore::Look(const PlanKey& key, Access access) {
  const auto known = known_.Find(key);
  return known ? Compare(key, access, *known) : Read(key, access);
}

PlanAnswer RedisPlanStore::LookAgain(const PlanKey& key, Access access,
                                     const std::shared_ptr<const PlanEntry>& held) {
  if (!held) return Look(key, access);
  const auto known = known_.Find(key);
  if (known && known->entry == held) return Compare(key, access, *known);
  const std::string bytes = SealUnder(options_.keys.get(), keys_.Plan(key), EncodeEntry(*held));
  return Compare(key, access, {held, {held->generation, SealOf(bytes)}});
}

PlanAnswer RedisPlanStore::Compare(const PlanKey& key, Access access,
                                   const KnownEntries::Known& known) {
  const std::string name = keys_.Plan(key);
  std::vector<RedisCommand> commands = {{"EVAL", kSeal, "1", name, absl::StrCat(kSealSize)}};
  if (access == Access::kLookup) commands.push_back({"PTTL", name});
  const auto replies = redis_->Run(commands);
  if (!replies.ok()) return Failed(CacheFailure::kUnavailable);
  const RedisReply& there = replies->front();
  const bool same = there.kind == RedisReply::Kind::kList && there.list.size() == 2 &&
                    there.list[0].text == absl::StrCat(known.stamp.generation) &&
                    there.list[1].text == known.stamp.seal;
  if (!same) return Read(key, access);
  known_.Remember(key, known.stamp, known.entry);
  RenewIfHalfGone(key, *replies);
  return PlanAnswer{known.entry};
}

void RedisPlanStore::RenewIfHalfGone(const PlanKey& key, const std::vector<RedisReply>& replies) {
  if (replies.size() < 2 || !IsInteger(replies[1]) ||
      replies[1].integer >= options_.time_to_live.count() / 2) {
    return;
  }
  // On a replica or a full disk it fails, and the entry expires when it would have.
  redis_->Run({{"PEXPIRE", keys_.Plan(key), Milliseconds(options_.time_to_live)}})
      .status()
      .IgnoreError();
}

PlanAnswer RedisPlanStore::Read(const PlanKey& key, Access access) {
  const std::string name = keys_.Plan(key);
  std::vector<RedisCommand> commands = {{"HMGET", name, "g", "v", "t", "u"}};
  if (access == Access::kLookup) commands.push_back({"PTTL", name});
  auto replies = redis_->Run(commands);
  if (absl::IsResourceExhausted(replies.status())) {
    const auto generation = redis_->Run({{"HGET", name, "g"}});
    if (generation.ok()) Discard(key, generation->front().text);
    return Failed(CacheFailure::kCorrupt);
  }
  if (!replies.ok()) return Failed(CacheFailure::kUnavailable);
  RedisReply& found = replies->front();
  if (found.kind != RedisReply::Kind::kList || found.list.size() != 4) {
    Discard(key, "");
    return Failed(CacheFailure::kCorrupt);
  }
  if (found.list[0].kind == RedisReply::Kind::kNothing &&
      found.list[1].kind == RedisReply::Kind::kNothing) {
    return Absent(key);
  }
  PlanAnswer answer = Decoded(key, std::move(found.list));
  if (answer.entry) RenewIfHalfGone(key, *replies);
  return answer;
}

PlanAnswer RedisPlanStore::Decoded(const PlanKey& key, std::vector<RedisReply> fields) {
  const std::string& generation = fields[0].text;
  const std::string seal = SealOf(fields[1].text);
  absl::StatusOr<std::string> bytes =
      OpenUnder(options_.keys.get(), keys_.Plan(key), std::move(fields[1].text));
  auto entry = bytes.ok() ? DecodeEntry(key, *std::move(bytes), fields[3].text) : bytes.status();
  int64_t beside = 0;
  if (entry.ok() && absl::SimpleAtoi(generation, &beside) && (*entry)->generation == beside) {
    if (fields[2].kind != RedisReply::Kind::kText) Adopt(key, generation, (*entry)->tenant);
    known_.Remember(key, {beside, seal}, *entry);
    return PlanAnswer{*std::move(entry)};
  }
  Discard(key, generation);
  return Failed(entry.ok() ? CacheFailure::kCorrupt : FailureOf(entry.status()));
}

void RedisPlanStore::Adopt(const PlanKey& key, const std::string& generation,
                           const std::string& tenant) {
  const int part = keys_.PartOf(key);
  // On a replica or a full server it fails, and the entry stays in the list of every tenant.
  redis_
      ->Run({{"EVAL", absl::StrCat(kIndex, kAdopt), "3", keys_.Plan(key), keys_.Index(tenant, part),
              keys_.Index(std::nullopt, part), generation, tenant, RedisKeys::Member(key),
              Milliseconds(options_.index_age)}})
      .status()
      .IgnoreError();
}

PlanAnswer RedisPlanStore::Absent(const PlanKey& key) {
  const auto gone = redis_->Run({{"EXISTS", keys_.Gone(key)}});
  if (!gone.ok()) return Failed(CacheFailure::kUnavailable);
  return PlanAnswer{nullptr, gone->front().integer == 1 ? Absence::kErased : Absence::kUnknown};
}

void RedisPlanStore::Discard(const PlanKey& key, const std::string& generation) {
  redis_->Run({{"EVAL", kDiscard, "1", keys_.Plan(key), generation}}).status().IgnoreError();
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
  const std::string& tenant = fit->entry->tenant;
  const int part = keys_.PartOf(key);
  const std::string generation = absl::StrCat(fit->entry->generation);
  const std::string sealed =
      SealUnder(options_.keys.get(), keys_.Plan(key), EncodeEntry(*fit->entry));
  const auto replies = redis_->Run(
      {{"EVAL", absl::StrCat(kIndex, kWrite), "4", keys_.Plan(key), keys_.Gone(key),
        keys_.Index(tenant, part), keys_.Index(std::nullopt, part), generation, sealed,
        Milliseconds(options_.time_to_live), absl::StrCat(kChangesPerHistory), rule, tenant,
        RedisKeys::Member(key), Milliseconds(options_.index_age), UpdateNoteOf(*fit->entry)}});
  if (!replies.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
    return replies.status();
  }
  if (absl::Status refused = StatusOf(replies->front()); !refused.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kNotWritten);
    return refused;
  }
  if (replies->front().integer != 1) return StaleGenerationError();
  known_.Remember(key, {fit->entry->generation, SealOf(sealed)}, fit->entry);
  return absl::OkStatus();
}

absl::StatusOr<bool> RedisPlanStore::Erase(const PlanKey& key) {
  const auto replies = redis_->Run({{"EVAL", kErase, "2", keys_.Plan(key), keys_.Gone(key),
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

absl::StatusOr<std::vector<PlanKey>> RedisPlanStore::List(const std::optional<PlanKey>& after,
                                                          size_t limit) {
  return ListIn(std::nullopt, after, limit);
}

absl::StatusOr<std::vector<PlanKey>> RedisPlanStore::ListOf(const std::string& tenant,
                                                            const std::optional<PlanKey>& after,
                                                            size_t limit) {
  return ListIn(tenant, after, limit);
}

absl::StatusOr<RedisPlanStore::Keys> RedisPlanStore::ListIn(
    const std::optional<std::string>& tenant, const std::optional<PlanKey>& after, size_t limit) {
  // A server that is broken may never come to an end.
  const Deadline deadline = std::chrono::steady_clock::now() + options_.list_time;
  Keys keys;
  for (int part = 0; part < keys_.parts(); ++part) {
    const absl::StatusOr<Keys> some = ListPart(part, tenant, after, limit, deadline);
    if (!some.ok()) {
      metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
      return some.status();
    }
    keys.insert(keys.end(), some->begin(), some->end());
  }
  std::sort(keys.begin(), keys.end());
  if (keys.size() > limit) keys.resize(limit);
  return keys;
}

absl::StatusOr<RedisPlanStore::Keys> RedisPlanStore::ListPart(
    int part, const std::optional<std::string>& tenant, const std::optional<PlanKey>& after,
    size_t limit, Deadline deadline) {
  const auto indexed = IndexedPage(part, tenant, after, limit, deadline);
  if (!indexed.ok()) return indexed.status();
  if (indexed->has_value()) return **indexed;
  return WalkedPage(part, tenant, after, limit, deadline);
}

absl::StatusOr<std::optional<RedisPlanStore::Keys>> RedisPlanStore::IndexedPage(
    int part, const std::optional<std::string>& tenant, const std::optional<PlanKey>& after,
    size_t limit, Deadline deadline) {
  const std::string index = keys_.Index(tenant, part);
  Keys keys;
  std::string start = absl::StrCat("(", after ? RedisKeys::Member(*after) : kCompleteMember);
  while (keys.size() < limit && !start.empty()) {
    if (std::chrono::steady_clock::now() > deadline) return ListTimeError();
    const auto replies = redis_->Run({{"EVAL", kPage, "1", index, start,
                                       absl::StrCat(limit - keys.size()), keys_.PlanPrefix(part)}});
    if (!replies.ok()) return replies.status();
    const RedisReply& page = replies->front();
    // Not the index, or not of a kind that the script understands.
    if (page.kind != RedisReply::Kind::kList || page.list.empty()) return std::optional<Keys>();
    start = page.list.front().text;
    for (size_t i = 1; i < page.list.size(); ++i) {
      const std::optional<PlanKey> key = RedisKeys::ParseMember(page.list[i].text);
      if (!key || (!keys.empty() && !(keys.back() < *key))) {
        return absl::UnavailableError("Redis sends no page of keys");
      }
      keys.push_back(*key);
    }
  }
  return std::optional<Keys>(std::move(keys));
}

absl::StatusOr<RedisPlanStore::Keys> RedisPlanStore::WalkedPage(
    int part, const std::optional<std::string>& tenant, const std::optional<PlanKey>& after,
    size_t limit, Deadline deadline) {
  const std::string index = keys_.Index(tenant, part);
  const std::string age = Milliseconds(options_.index_age);
  LeastKeys least(after, limit);
  bool complete = true;
  // Where the index cannot be written the next List walks, too.
  const auto add = [&](const std::vector<std::string>& members) {
    RedisCommand command = {"EVAL", kAddMembers, "1", index, age};
    command.insert(command.end(), members.begin(), members.end());
    redis_->Run({command}).status().IgnoreError();
  };
  const std::string walk = absl::StrCat("#", FirstGeneration());
  add({walk});
  const auto page = [&](const std::vector<RedisReply>& names) {
    if (std::chrono::steady_clock::now() > deadline) return ListTimeError();
    auto found = KeysAmong(names, tenant);
    if (!found.ok()) return found.status();
    for (const PlanKey& key : found->all) least.Add(key);
    complete = complete && found->all_known;
    if (!found->members.empty()) add(found->members);
    return absl::OkStatus();
  };
  absl::Status walked = ScanAt(index, keys_.PlanPattern(part), redis_.get(), page);
  if (!walked.ok()) return walked;
  if (complete) {
    redis_->Run({{"EVAL", kComplete, "1", index, walk, age}}).status().IgnoreError();
  }
  return least.keys();
}

absl::StatusOr<RedisPlanStore::Walked> RedisPlanStore::KeysAmong(
    const std::vector<RedisReply>& names, const std::optional<std::string>& tenant) {
  Walked walked;
  std::vector<RedisCommand> ask;
  for (const RedisReply& name : names) {
    const std::optional<PlanKey> key = keys_.ParsePlan(name.text);
    if (!key) continue;
    walked.all.push_back(*key);
    ask.push_back({"HGET", name.text, "t"});
  }
  const auto member = [](const PlanKey& key) { return RedisKeys::Member(key); };
  if (!tenant || ask.empty()) {
    std::transform(walked.all.begin(), walked.all.end(), std::back_inserter(walked.members),
                   member);
    return walked;
  }
  const auto tenants = redis_->Run(ask);
  if (!tenants.ok()) return tenants.status();
  Walked theirs;
  for (size_t i = 0; i < walked.all.size(); ++i) {
    const RedisReply& of = (*tenants)[i];
    const bool known = of.kind == RedisReply::Kind::kText;
    if (known && of.text != *tenant) continue;
    theirs.all.push_back(walked.all[i]);
    theirs.all_known = theirs.all_known && known;
    if (known) theirs.members.push_back(member(walked.all[i]));
  }
  return theirs;
}

PlanStoreStats RedisPlanStore::stats() const {
  std::lock_guard<std::mutex> lock(stats_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (stats_time_ && now < *stats_time_ + options_.stats_age) return stats_;
  // Of a server that does not answer: what it said last.
  stats_time_ = now;
  const auto servers = redis_->RunOnAll({{"DBSIZE"}, {"INFO", "memory"}});
  if (!servers.ok()) return stats_;
  stats_ = {};
  for (const std::vector<RedisReply>& replies : *servers) {
    stats_.entries += replies.front().integer;
    stats_.charged += Bytes(FieldOf(replies.back().text, "used_memory"));
  }
  return stats_;
}

}  // namespace stowage
