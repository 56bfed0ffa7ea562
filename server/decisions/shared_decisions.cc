#include "server/decisions/shared_decisions.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/entries/entry_codec.h"
#include "server/store/redis_scan.h"

namespace stowage {
namespace {

// Before the record: so many digits of the stamp, then of the generation.
constexpr size_t kStampDigits = 19;
constexpr size_t kHeadDigits = kStampDigits + 16;

// KEYS: decisions. Field and head of each.
constexpr char kHeads[] = R"(
local heads = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  heads[i] = all[i]
  heads[i + 1] = string.sub(all[i + 1], 1, 35)
end
return heads
)";

// KEYS: decisions. ARGV: field and value of each. An equal one is written again: it may be sealed under another key now.
constexpr char kTell[] = R"(
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
for i = 1, #ARGV, 2 do
  local there = string.sub(redis.call('HGET', KEYS[1], ARGV[i]) or '', 1, 19)
  if not string.match(there, '^%d+$') or there <= string.sub(ARGV[i + 1], 1, 19) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  end
end
return 1
)";

// Of a server that has gone.
constexpr char kMarkLivesMs[] = "3600000";

// A server that is broken may never come to an end.
constexpr std::chrono::seconds kLongestWalk{20};

std::string FieldOf(const DecisionId& id) {
  return absl::StrCat(static_cast<int>(id.first), ":", id.second);
}

// Nothing: not of ours.
std::optional<Decision> HeadOf(const std::string& field, const std::string& head) {
  Decision decision;
  const std::vector<std::string> id = absl::StrSplit(field, ':');
  int kind = 0;
  int64_t budget = 0;
  if (id.size() != 2 || !absl::SimpleAtoi(id[0], &kind) || !absl::SimpleAtoi(id[1], &budget) ||
      kind < 0 || kind > static_cast<int>(DecisionKind::kBudget) || head.size() != kHeadDigits ||
      !absl::SimpleAtoi(head.substr(0, kStampDigits), &decision.stamp) ||
      !absl::SimpleAtoi(head.substr(kStampDigits), &decision.generation)) {
    return std::nullopt;
  }
  decision.kind = static_cast<DecisionKind>(kind);
  decision.budget = Bytes(budget);
  return decision;
}

std::string RandomName() {
  std::random_device random;
  return absl::StrCat(absl::Hex(random(), absl::kZeroPad8), absl::Hex(random(), absl::kZeroPad8));
}

}  // namespace

RedisDecisions::RedisDecisions(const std::string& prefix, std::shared_ptr<RedisClient> redis,
                               ServerMetrics* metrics, std::shared_ptr<const EntryKeys> entry_keys)
    : entry_keys_(std::move(entry_keys)),
      keys_(prefix, entry_keys_ != nullptr, redis->is_cluster()),
      name_(RandomName()),
      redis_(std::move(redis)),
      metrics_(metrics) {}

std::string RedisDecisions::NameOf(const PlanKey& key, const std::string& field) const {
  return absl::StrCat(keys_.Decisions(key), "/", field);
}

absl::StatusOr<RedisReply> RedisDecisions::Run(const RedisCommand& command) {
  return OnlyReply(redis_->Run({command}));
}

absl::StatusOr<RedisReply> RedisDecisions::OnlyReply(
    const absl::StatusOr<std::vector<RedisReply>>& replies) {
  if (!replies.ok()) {
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
    return absl::UnavailableError(replies.status().message());
  }
  const absl::Status status = StatusOf(replies->front());
  if (status.ok()) return replies->front();
  metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kNotWritten);
  return absl::UnavailableError(status.message());
}

absl::StatusOr<std::vector<Decision>> RedisDecisions::Heads(const PlanKey& key) {
  const absl::StatusOr<std::vector<RedisReply>> replies =
      redis_->Run({{"EVAL", kHeads, "1", keys_.Decisions(key)}});
  if (replies.ok() && absl::IsInternal(StatusOf(replies->front()))) {
    // Of another type: Tell makes it one of ours.
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kCorrupt);
    return std::vector<Decision>();
  }
  const absl::StatusOr<RedisReply> reply = OnlyReply(replies);
  if (!reply.ok()) return reply.status();
  std::vector<Decision> heads;
  for (size_t i = 1; i < reply->list.size(); i += 2) {
    const auto head = HeadOf(reply->list[i - 1].text, reply->list[i].text);
    if (head) heads.push_back(*head);
  }
  return heads;
}

absl::StatusOr<std::vector<Decision>> RedisDecisions::Read(const PlanKey& key,
                                                           const std::vector<DecisionId>& ids) {
  RedisCommand command = {"HMGET", keys_.Decisions(key)};
  for (const DecisionId& id : ids) command.push_back(FieldOf(id));
  const absl::StatusOr<RedisReply> reply = Run(command);
  if (!reply.ok()) return reply.status();
  std::vector<Decision> read;
  for (size_t i = 0; i < reply->list.size() && i < ids.size(); ++i) {
    const RedisReply& value = reply->list[i];
    if (value.text.size() < kHeadDigits) continue;
    absl::StatusOr<Decision> decision = Decoded(key, FieldOf(ids[i]), value.text);
    if (decision.ok()) {
      read.push_back(*std::move(decision));
    } else {
      metrics_->CacheFailed(CacheTier::kRedis, FailureOf(decision.status()));
    }
  }
  return read;
}

absl::StatusOr<Decision> RedisDecisions::Decoded(const PlanKey& key, const std::string& field,
                                                 const std::string& value) const {
  const absl::StatusOr<std::string> opened =
      OpenUnder(entry_keys_.get(), NameOf(key, field), value);
  if (!opened.ok()) return opened.status();
  absl::StatusOr<Decision> decision =
      DecodeDecision(key, opened->substr(std::min(opened->size(), kHeadDigits)));
  const bool is_other = decision.ok() && FieldOf(IdOf(*decision)) != field;
  return is_other ? absl::DataLossError("it is another decision about the key") : decision;
}

absl::StatusOr<SharedDecisions::AllOfKey> RedisDecisions::ReadAll(const PlanKey& key) {
  const std::string name = keys_.Decisions(key);
  const auto unavailable = [&name](absl::string_view field, absl::string_view why) {
    return absl::UnavailableError(
        absl::StrCat(name, " ", absl::CHexEscape(field), " in Redis cannot be read: ", why));
  };
  const absl::StatusOr<RedisReply> fields = Run({"HKEYS", name});
  if (!fields.ok()) return unavailable("", fields.status().message());
  AllOfKey all;
  for (const RedisReply& field : fields->list) {
    const absl::StatusOr<RedisReply> value = Run({"HGET", name, field.text});
    if (!value.ok()) return unavailable(field.text, value.status().message());
    if (value->kind == RedisReply::Kind::kNothing) return unavailable(field.text, "it has gone");
    absl::StatusOr<Decision> decision = Decoded(key, field.text, value->text);
    if (decision.ok()) {
      all.read.push_back(*std::move(decision));
      continue;
    }
    metrics_->CacheFailed(CacheTier::kRedis, FailureOf(decision.status()));
    const auto head = HeadOf(field.text, value->text.substr(0, kHeadDigits));
    if (!head) return unavailable(field.text, decision.status().message());
    all.unreadable.push_back(*head);
  }
  return all;
}

absl::Status RedisDecisions::Tell(const PlanKey& key, const std::vector<Decision>& decisions) {
  RedisCommand command = {"EVAL", kTell, "1", keys_.Decisions(key)};
  for (const Decision& decision : decisions) {
    const std::string field = FieldOf(IdOf(decision));
    command.push_back(field);
    command.push_back(SealUnder(entry_keys_.get(), NameOf(key, field),
                                absl::StrCat(absl::Dec(decision.stamp, absl::kZeroPad19),
                                             absl::Dec(decision.generation, absl::kZeroPad16),
                                             EncodeDecision(key, decision))));
  }
  return Run(command).status();
}

absl::Status RedisDecisions::CheckPart(int part) {
  const std::string name = keys_.DecisionMark(name_, part);
  const absl::StatusOr<RedisReply> mark = Run({"EXISTS", name});
  if (!mark.ok()) return mark.status();
  if (mark->integer != 1 || failovers_ != redis_->failovers()) {
    return absl::UnavailableError("what servers share was lost, and is told again");
  }
  if (!redis_->is_cluster()) return absl::OkStatus();
  const absl::StatusOr<RedisReply> nodes = OnlyReply(redis_->RunAt(name, {{"CLUSTER", "NODES"}}));
  if (!nodes.ok()) return nodes.status();
  // A slot that comes or goes stands in brackets in the line of the server that says so.
  if (!absl::StrContains(nodes->text, "[")) return absl::OkStatus();
  return absl::UnavailableError("slots of the Redis cluster are being moved");
}

absl::StatusOr<std::vector<PlanKey>> RedisDecisions::Keys(const std::optional<PlanKey>& after,
                                                          size_t limit, const StopToken& stop) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestWalk;
  LeastKeys least(after, limit);
  const auto page = [&](const std::vector<RedisReply>& names) {
    for (const RedisReply& name : names) {
      if (const auto key = keys_.ParseDecisions(name.text)) least.Add(*key);
    }
    if (stop.stop_requested()) return absl::CancelledError("nobody waits for the keys");
    if (std::chrono::steady_clock::now() < deadline) return absl::OkStatus();
    return absl::UnavailableError("Redis does not come to the end of its keys");
  };
  for (int part = 0; part < keys_.parts(); ++part) {
    absl::Status walked = CheckPart(part);
    const std::string name = keys_.DecisionMark(name_, part);
    if (walked.ok()) walked = ScanAt(name, keys_.DecisionsPattern(part), redis_.get(), page);
    if (walked.ok()) walked = CheckPart(part);
    if (walked.ok()) continue;
    if (absl::IsCancelled(walked)) return walked;
    metrics_->CacheFailed(CacheTier::kRedis, CacheFailure::kUnavailable);
    return absl::UnavailableError(walked.message());
  }
  return least.keys();
}

absl::Status RedisDecisions::Mark() {
  failovers_ = redis_->failovers();
  {
    std::lock_guard<std::mutex> lock(mark_mutex_);
    sealed_ = SealUnder(entry_keys_.get(), "mark", "");
  }
  for (int part = 0; part < keys_.parts(); ++part) {
    const absl::StatusOr<RedisReply> reply =
        Run({"SET", keys_.DecisionMark(name_, part), "1", "PX", kMarkLivesMs});
    if (!reply.ok()) return reply.status();
  }
  return absl::OkStatus();
}

absl::Status RedisDecisions::CheckHasAll() {
  for (int part = 0; part < keys_.parts(); ++part) {
    if (absl::Status has_all = CheckPart(part); !has_all.ok()) return has_all;
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RedisDecisions::IsMarked() {
  // All of them, so that none ends.
  bool marked = true;
  for (int part = 0; part < keys_.parts(); ++part) {
    const absl::StatusOr<RedisReply> reply =
        Run({"SET", keys_.DecisionMark(name_, part), "1", "XX", "PX", kMarkLivesMs});
    if (!reply.ok()) return reply.status();
    marked = marked && reply->kind != RedisReply::Kind::kNothing;
  }
  std::lock_guard<std::mutex> lock(mark_mutex_);
  return marked && failovers_ == redis_->failovers() &&
         sealed_ == SealUnder(entry_keys_.get(), "mark", "");
}

}  // namespace stowage
