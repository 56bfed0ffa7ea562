#include "server/cache/redis_keys.h"

#include <array>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/cache/entry_codec.h"

namespace stowage {
namespace {

constexpr char kPlan[] = "plan:";

std::string Suffix(const PlanKey& key) {
  return absl::StrCat(key.encoding_version, ":", key.digest.ToHex());
}

}  // namespace

RedisKeys::RedisKeys(const std::string& prefix)
    : base_(absl::StrCat(prefix, ":v", kEntryVersion, ":")) {}

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

std::string RedisKeys::PlanPattern() const { return absl::StrCat(base_, kPlan, "*"); }

std::optional<PlanKey> RedisKeys::ParsePlan(const std::string& name) const {
  const std::string start = absl::StrCat(base_, kPlan);
  if (name.rfind(start, 0) != 0) return std::nullopt;
  const size_t colon = name.find(':', start.size());
  PlanKey key;
  if (colon == std::string::npos ||
      !absl::SimpleAtoi(name.substr(start.size(), colon - start.size()), &key.encoding_version)) {
    return std::nullopt;
  }
  const std::string hex = name.substr(colon + 1);
  if (hex.size() != 2 * Digest::kSize) return std::nullopt;
  std::array<uint8_t, Digest::kSize> digest{};
  const std::string bytes = absl::HexStringToBytes(hex);
  for (size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<uint8_t>(bytes[i]);
  key.digest = Digest(digest);
  // Only what Plan() would write: HexStringToBytes takes anything.
  if (Plan(key) != name) return std::nullopt;
  return key;
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
