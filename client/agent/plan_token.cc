#include "client/agent/plan_token.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr char kFormat[] = "stowage-plan-1";

}  // namespace

std::string ToString(const PlanToken& token) {
  const std::string host =
      token.host_memory == kAllHostMemory ? "" : absl::StrCat(":", token.host_memory.value());
  return absl::StrCat(kFormat, ":", token.key.encoding_version, ":", token.key.digest.ToHex(), ":",
                      token.plan.ToHex(), ":", token.budget.value(), host);
}

absl::StatusOr<PlanToken> ParsePlanToken(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  PlanToken token;
  int64_t budget = 0;
  int64_t host_memory = kAllHostMemory.value();
  if ((parts.size() == 5 || parts.size() == 6) && parts[0] == kFormat &&
      absl::SimpleAtoi(parts[1], &token.key.encoding_version) &&
      absl::SimpleAtoi(parts[4], &budget) &&
      (parts.size() == 5 || absl::SimpleAtoi(parts[5], &host_memory))) {
    const std::optional<Digest> key = DigestFromHex(parts[2]);
    const std::optional<Digest> plan = DigestFromHex(parts[3]);
    if (key && plan && budget > 0 && host_memory >= 0) {
      token.key.digest = *key;
      token.plan = *plan;
      token.budget = Bytes(budget);
      token.host_memory = Bytes(host_memory);
      return token;
    }
  }
  return FieldError(
      "token", text,
      absl::StrCat("must be ", kFormat,
                   ":<version>:<64 hexadecimal digits>:<64>:<bytes>, or that and :<bytes>"));
}

}  // namespace stowage
