// Arbitrary text where a key is read from: a page token of ListPlans, the name of a plan in Redis.
// Refused, or a key that is written as that text.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "server/cache/redis_keys.h"
#include "server/rpc/plan_page.h"
#include "solvers/model/field_error.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

void CheckPageToken(const std::string& text) {
  const absl::StatusOr<std::optional<PlanKey>> after = FromPageToken(text);
  if (after.ok()) {
    Require(ToPageToken(*after) == absl::AsciiStrToLower(text), "a key has one token", text);
    return;
  }
  const std::optional<FieldViolation> violation = GetFieldViolation(after.status());
  Require(violation && violation->field == "page_token", "the error names the field", text);
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
  const RedisKeys keys("stowage");
  std::string beginning = keys.PlanPattern();
  beginning.pop_back();  // the star
  CheckRedisName(keys, text);
  CheckRedisName(keys, beginning + text);
  return 0;
}
