#include "server/decisions/durable_redis.h"

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

struct DurableSetting {
  const char* name;
  const char* must_be;
};

constexpr std::array<DurableSetting, 4> kDurableSettings = {{
    {"appendonly", "yes"},
    {"appendfsync", "always"},
    {"no-appendfsync-on-rewrite", "no"},
    {"maxmemory-policy", "noeviction"},
}};

constexpr size_t kLargestSettings = 4096;
// Of what a server says, in a message.
constexpr size_t kLongestValue = 32;

absl::Status NotSaid(const DurableSetting& setting) {
  return absl::FailedPreconditionError(
      absl::StrCat("Redis does not say its ", setting.name, ", which must be ", setting.must_be,
                   ": its user needs CONFIG GET (ACL: +config|get)"));
}

absl::Status CheckSetting(const DurableSetting& setting, const RedisReply& reply) {
  const absl::Status answered = StatusOf(reply);
  // A command that it does not have has no word of its own.
  if (reply.text == "NOPERM" || absl::IsInternal(answered)) return NotSaid(setting);
  if (!answered.ok()) return answered;
  if (reply.list.size() != 2) return NotSaid(setting);
  const std::string& value = reply.list[1].text;
  if (value == setting.must_be) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(setting.name, " of Redis is ", absl::CHexEscape(value.substr(0, kLongestValue)),
                   ": must be ", setting.must_be, ", or what it has acknowledged may be lost"));
}

}  // namespace

absl::Status CheckDurable(RedisConnection* redis, RedisConnection::Clock::time_point deadline) {
  std::vector<RedisCommand> commands;
  for (const DurableSetting& setting : kDurableSettings) {
    commands.push_back({"CONFIG", "GET", setting.name});
  }
  const auto replies = redis->Run(commands, deadline, kLargestSettings);
  if (!replies.ok()) return replies.status();
  for (size_t i = 0; i < kDurableSettings.size(); ++i) {
    absl::Status checked = CheckSetting(kDurableSettings[i], (*replies)[i]);
    if (!checked.ok()) return checked;
  }
  return absl::OkStatus();
}

}  // namespace stowage
