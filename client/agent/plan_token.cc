#include "client/agent/plan_token.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr char kFormat[] = "stowage-plan-1";

std::optional<Digest> DigestOf(const std::string& hex) {
  if (hex.size() != 2 * Digest::kSize) return std::nullopt;
  for (const char digit : hex) {
    if (!(digit >= '0' && digit <= '9') && !(digit >= 'a' && digit <= 'f')) return std::nullopt;
  }
  const std::string binary = absl::HexStringToBytes(hex);
  std::array<uint8_t, Digest::kSize> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(binary[i]);
  return Digest(bytes);
}

}  // namespace

std::string ToString(const PlanToken& token) {
  return absl::StrCat(kFormat, ":", token.key.encoding_version, ":", token.key.digest.ToHex(), ":",
                      token.plan.ToHex(), ":", token.budget.value());
}

absl::StatusOr<PlanToken> ParsePlanToken(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  PlanToken token;
  int64_t budget = 0;
  if (parts.size() == 5 && parts[0] == kFormat &&
      absl::SimpleAtoi(parts[1], &token.key.encoding_version) &&
      absl::SimpleAtoi(parts[4], &budget)) {
    const std::optional<Digest> key = DigestOf(parts[2]);
    const std::optional<Digest> plan = DigestOf(parts[3]);
    if (key && plan && budget > 0) {
      token.key.digest = *key;
      token.plan = *plan;
      token.budget = Bytes(budget);
      return token;
    }
  }
  return FieldError(
      "token", text,
      absl::StrCat("must be ", kFormat, ":<version>:<64 hexadecimal digits>:<64>:<bytes>"));
}

}  // namespace stowage
