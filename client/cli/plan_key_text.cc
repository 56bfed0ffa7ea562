#include "client/cli/plan_key_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/rpc/plan_pager.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr size_t kAllDigits = 2 * Digest::kSize;
constexpr int32_t kPageSize = 1000;
constexpr size_t kMostNamed = 4;

absl::StatusOr<std::string> Digits(const std::string& text) {
  const std::string lower = absl::AsciiStrToLower(text);
  const bool hex = lower.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hex && lower.size() <= kAllDigits) return lower;
  return FieldError("--key", text,
                    absl::StrCat("must be hexadecimal, at most ", kAllDigits, " digits"));
}

PlanKey KeyOf(const std::string& digits) {
  const std::string binary = absl::HexStringToBytes(digits);
  std::array<uint8_t, Digest::kSize> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(binary[i]);
  return PlanKey{kEncodingVersion, Digest(bytes)};
}

absl::Status AmbiguousKey(const std::string& text, const std::set<PlanKey>& keys) {
  std::vector<std::string> some;
  for (const PlanKey& key : keys) {
    if (some.size() == kMostNamed) break;
    some.push_back(key.digest.ToHex().substr(0, std::max(kShownDigits, text.size() + 4)));
  }
  return FieldError("--key", text,
                    absl::StrCat("begins ", keys.size(), " keys (", absl::StrJoin(some, ", "),
                                 keys.size() > some.size() ? ", ..." : "", "): give more digits"));
}

}  // namespace

absl::StatusOr<std::vector<ListedPlan>> ListAll(PlanConnection* connection,
                                                const std::string& prefix, const CallOptions& call,
                                                const std::string& filter) {
  const absl::StatusOr<std::string> digits = Digits(prefix);
  if (!digits.ok()) return digits.status();
  ListQuery query;
  query.page_size = kPageSize;
  query.filter = filter;
  if (digits->size() == kAllDigits) {
    query.key = KeyOf(*digits);
  } else if (!digits->empty()) {
    absl::StrAppend(&query.filter, filter.empty() ? "" : " AND ", "key = ", *digits, "*");
  }
  PlanPager pager(connection, query);
  std::vector<ListedPlan> plans;
  while (!pager.done()) {
    absl::StatusOr<std::vector<ListedPlan>> page = pager.Next(call);
    if (!page.ok()) return page.status();
    for (ListedPlan& plan : *page) {
      if (absl::StartsWith(plan.revision.key.digest.ToHex(), *digits)) {
        plans.push_back(std::move(plan));
      }
    }
  }
  return plans;
}

std::string NameFilter(const std::string& part) {
  if (part.empty()) return "";
  const std::string quoted = absl::StrReplaceAll(part, {{"\\", "\\\\"}, {"\"", "\\\""}});
  return absl::StrCat("name : \"", quoted, "\"");
}

absl::StatusOr<PlanKey> FindKey(PlanConnection* connection, const std::string& text,
                                const CallOptions& call) {
  const absl::StatusOr<std::string> digits = Digits(text);
  if (!digits.ok()) return digits.status();
  if (digits->empty())
    return FieldError("--key", "\"\"", "must name a key, see `stowage cache ls`");
  if (digits->size() == kAllDigits) return KeyOf(*digits);
  const absl::StatusOr<std::vector<ListedPlan>> plans = ListAll(connection, *digits, call);
  if (!plans.ok()) return plans.status();
  std::set<PlanKey> keys;
  for (const ListedPlan& plan : *plans) keys.insert(plan.revision.key);
  if (keys.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no key of ", connection->name(), " begins with ", *digits));
  }
  if (keys.size() > 1) return AmbiguousKey(*digits, keys);
  return *keys.begin();
}

}  // namespace stowage
