// Arbitrary text where a key is read from: a page token of ListPlans, the name of a plan in Redis.
// Refused, or a key that is written as that text; a page token is of one key and one list.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/cache/redis_keys.h"
#include "server/rpc/plan_page.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

const std::optional<std::string> kLists[] = {std::nullopt, "a tenant"};

void CheckPageToken(const std::string& text) {
  for (const std::optional<std::string>& list : kLists) {
    const absl::StatusOr<std::optional<PlanKey>> after = FromPageToken(text, list);
    if (after.ok()) continue;
    const std::optional<FieldViolation> violation = GetFieldViolation(after.status());
    Require(violation && violation->field == "page_token", "the error names the field", text);
  }
}

// Arbitrary text is next to never a token: a key of these bytes makes one.
void CheckTokenOfKey(const std::string& text) {
  const PlanKey key{static_cast<int32_t>(text.size()), Sha256(text)};
  const std::string token = ToPageToken(key, kLists[0]);
  const absl::StatusOr<std::optional<PlanKey>> after = FromPageToken(token, kLists[0]);
  Require(after.ok() && *after == key, "a token has one key", token);
  Require(!FromPageToken(token, kLists[1]).ok(), "a token is of one list", token);
}

void CheckRedisName(const RedisKeys& keys, const std::string& name) {
  const std::optional<PlanKey> key = keys.ParsePlan(name);
  if (key) Require(keys.Plan(*key) == name, "a key has one name", name);
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  const std::string text(reinterpret_cast<const char*>(data), size);
  CheckPageToken(text);
  CheckTokenOfKey(text);
  const RedisKeys keys("stowage");
  std::string beginning = keys.PlanPattern();
  beginning.pop_back();  // the star
  CheckRedisName(keys, text);
  CheckRedisName(keys, beginning + text);
  return 0;
}
