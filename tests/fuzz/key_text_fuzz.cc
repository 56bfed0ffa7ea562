// Arbitrary text where a key is read from: a page token of ListPlans, the name of a plan in Redis.
// Refused, or a key that is written as that text; a page token is of one place and one list. The filter of a list is
// read from any text, too.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/rpc/plan_filter.h"
#include "server/rpc/plan_page.h"
#include "server/store/redis_keys.h"
#include "solvers/model/digest.h"
#include "solvers/model/field_error.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

const std::string kLists[] = {"all", "tenant a"};

void CheckPageToken(const std::string& text) {
  for (const std::string& list : kLists) {
    const absl::StatusOr<std::optional<PagePosition>> after = FromPageToken(text, list);
    if (after.ok()) continue;
    const std::optional<FieldViolation> violation = GetFieldViolation(after.status());
    Require(violation && violation->field == "page_token", "the error names the field", text);
  }
}

// Arbitrary text is next to never a token: a place of these bytes makes one.
void CheckTokenOfPlace(const std::string& text) {
  PagePosition place{PlanKey{static_cast<int32_t>(text.size()), Sha256(text)}, std::nullopt};
  const auto size = static_cast<int64_t>(text.size());
  if (size % 2 == 1) place.revision.emplace(size << 40, size);
  const std::string token = ToPageToken(place, kLists[0]);
  const absl::StatusOr<std::optional<PagePosition>> after = FromPageToken(token, kLists[0]);
  Require(after.ok() && (*after)->key == place.key && (*after)->revision == place.revision,
          "a token has one place", token);
  Require(!FromPageToken(token, kLists[1]).ok(), "a token is of one list", token);
}

void CheckFilter(const std::string& text) {
  const absl::StatusOr<PlanFilter> filter = PlanFilter::Parse(text);
  if (!filter.ok()) {
    const std::optional<FieldViolation> violation = GetFieldViolation(filter.status());
    Require(violation && violation->field == "filter", "the error names the field", text);
    return;
  }
  v1::PlanSummary plan;
  plan.set_name(text);
  Require(!filter->TakesAll() || filter->Takes(plan), "no restriction takes all", text);
  const absl::StatusOr<PlanFilter> twice =
      filter->TakesAll() ? filter : PlanFilter::Parse(text + " AND " + text);
  Require(!twice.ok() || twice->Takes(plan) == filter->Takes(plan), "twice is as once", text);
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
  CheckTokenOfPlace(text);
  CheckFilter(text);
  const RedisKeys keys("stowage");
  std::string beginning = keys.PlanPattern();
  beginning.pop_back();  // the star
  CheckRedisName(keys, text);
  CheckRedisName(keys, beginning + text);
  return 0;
}
