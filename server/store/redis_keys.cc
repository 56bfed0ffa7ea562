#include "server/store/redis_keys.h"

#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/entries/entry_codec.h"

namespace stowage {
namespace {

constexpr char kPlan[] = "plan:";

std::string Suffix(const PlanKey& key) {
  return absl::StrCat(key.encoding_version, ":", key.digest.ToHex());
}

// A key that may be meant by "version:hex".
std::optional<PlanKey> ParseSuffix(const std::string& text) {
  const size_t colon = text.find(':');
  PlanKey key;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(text.substr(0, colon), &key.encoding_version)) {
    return std::nullopt;
  }
  const std::string hex = text.substr(colon + 1);
  if (hex.size() != 2 * Digest::kSize) return std::nullopt;
  std::array<uint8_t, Digest::kSize> digest{};
  const std::string bytes = absl::HexStringToBytes(hex);
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(bytes[i]);
  key.digest = Digest(digest);
  return key;
}

}  // namespace

RedisKeys::RedisKeys(const std::string& prefix, bool keyed)
    : base_(absl::StrCat(prefix, ":v", kEntryVersion, keyed ? "m:" : ":")),
      decided_(absl::StrCat(prefix, ":decided:v1", keyed ? "m:" : ":")) {}

std::string RedisKeys::Plan(const PlanKey& key) const {
  return absl::StrCat(base_, kPlan, Suffix(key));
}

std::string RedisKeys::Gone(const PlanKey& key) const {
  return absl::StrCat(base_, "gone:", Suffix(key));
}

std::string RedisKeys::Lease(const PlanKey& key, const std::optional<Bytes>& budget) const {
  return absl::StrCat(base_, "lease:", Suffix(key), ":",
                      budget ? absl::StrCat(budget->value()) : "all");
}

std::string RedisKeys::Steps(const PlanKey& key, Bytes budget, int64_t revision,
                             uint64_t job) const {
  return absl::StrCat(base_, "steps:", Suffix(key), ":", budget.value(), ":", revision, ":",
                      absl::Hex(job, absl::kZeroPad16));
}

std::string RedisKeys::Index(const std::optional<std::string>& tenant) const {
  return tenant ? absl::StrCat(base_, "of:", *tenant) : absl::StrCat(base_, "all");
}

std::string RedisKeys::Member(const PlanKey& key) {
  return absl::StrCat(absl::Dec(key.encoding_version, absl::kZeroPad10), ":", key.digest.ToHex());
}

std::optional<PlanKey> RedisKeys::ParseMember(const std::string& member) {
  const std::optional<PlanKey> key = ParseSuffix(member);
  // Only what Member() would write: HexStringToBytes takes anything.
  return key && Member(*key) == member ? key : std::nullopt;
}

std::string RedisKeys::PlanPrefix() const { return absl::StrCat(base_, kPlan); }

std::string RedisKeys::PlanPattern() const { return PlanPrefix() + "*"; }

std::string RedisKeys::Decisions(const PlanKey& key) const {
  return absl::StrCat(decided_, "key:", Suffix(key));
}

std::string RedisKeys::DecisionMark(const std::string& server) const {
  return absl::StrCat(decided_, "told:", server);
}

std::optional<PlanKey> RedisKeys::ParsePlan(const std::string& name) const {
  const std::string start = PlanPrefix();
  if (name.rfind(start, 0) != 0) return std::nullopt;
  const std::optional<PlanKey> key = ParseSuffix(name.substr(start.size()));
  return key && Plan(*key) == name ? key : std::nullopt;
}

bool IsRedisPrefix(const std::string& prefix) {
  if (prefix.empty() || prefix.size() > 64) return false;
  for (const char c : prefix) {
    const bool fine = absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' ||
                      c == '.' || c == ':';
    if (!fine) return false;
  }
  return true;
}

}  // namespace stowage
