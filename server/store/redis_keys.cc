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
constexpr char kDecidedKey[] = "key:";

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

RedisKeys::RedisKeys(const std::string& prefix, bool keyed, bool tagged)
    : base_(absl::StrCat(prefix, ":v", kEntryVersion, keyed ? "m" : "")),
      decided_(absl::StrCat(prefix, ":decided:v1", keyed ? "m" : "")),
      tagged_(tagged) {}

int RedisKeys::PartOf(const PlanKey& key) const { return tagged_ ? key.digest.bytes()[0] >> 4 : 0; }

std::string RedisKeys::Tag(int part) const {
  return tagged_ ? absl::StrCat("{", absl::Hex(part), "}:") : ":";
}

std::string RedisKeys::Base(int part) const { return absl::StrCat(base_, Tag(part)); }

std::string RedisKeys::Decided(int part) const { return absl::StrCat(decided_, Tag(part)); }

std::string RedisKeys::Plan(const PlanKey& key) const {
  return absl::StrCat(Base(PartOf(key)), kPlan, Suffix(key));
}

std::string RedisKeys::Gone(const PlanKey& key) const {
  return absl::StrCat(Base(PartOf(key)), "gone:", Suffix(key));
}

std::string RedisKeys::Lease(const PlanKey& key, const std::optional<Bytes>& budget) const {
  return absl::StrCat(Base(PartOf(key)), "lease:", Suffix(key), ":",
                      budget ? absl::StrCat(budget->value()) : "all");
}

std::string RedisKeys::Steps(const PlanKey& key, Bytes budget, int64_t revision,
                             uint64_t job) const {
  return absl::StrCat(Base(PartOf(key)), "steps:", Suffix(key), ":", budget.value(), ":", revision,
                      ":", absl::Hex(job, absl::kZeroPad16));
}

std::string RedisKeys::Index(const std::optional<std::string>& tenant, int part) const {
  return tenant ? absl::StrCat(Base(part), "of:", *tenant) : absl::StrCat(Base(part), "all");
}

std::string RedisKeys::Member(const PlanKey& key) {
  return absl::StrCat(absl::Dec(key.encoding_version, absl::kZeroPad10), ":", key.digest.ToHex());
}

std::optional<PlanKey> RedisKeys::ParseMember(const std::string& member) {
  const std::optional<PlanKey> key = ParseSuffix(member);
  // Only what Member() would write: HexStringToBytes takes anything.
  return key && Member(*key) == member ? key : std::nullopt;
}

std::string RedisKeys::PlanPrefix(int part) const { return absl::StrCat(Base(part), kPlan); }

std::string RedisKeys::PlanPattern(int part) const { return PlanPrefix(part) + "*"; }

std::string RedisKeys::Decisions(const PlanKey& key) const {
  return absl::StrCat(Decided(PartOf(key)), kDecidedKey, Suffix(key));
}

std::string RedisKeys::DecisionsPattern(int part) const {
  return absl::StrCat(Decided(part), kDecidedKey, "*");
}

std::optional<PlanKey> RedisKeys::ParseDecisions(const std::string& name) const {
  const size_t start = DecisionsPattern().size() - 1;
  if (name.size() < start) return std::nullopt;
  const std::optional<PlanKey> key = ParseSuffix(name.substr(start));
  return key && Decisions(*key) == name ? key : std::nullopt;
}

std::string RedisKeys::DecisionMark(const std::string& server, int part) const {
  return absl::StrCat(Decided(part), "told:", server);
}

std::optional<PlanKey> RedisKeys::ParsePlan(const std::string& name) const {
  const size_t start = PlanPrefix().size();
  if (name.size() < start) return std::nullopt;
  const std::optional<PlanKey> key = ParseSuffix(name.substr(start));
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
