#include "server/rpc/plan_page.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/planning/reports.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr size_t kVersionDigits = 8;
constexpr size_t kTokenDigits = kVersionDigits + 2 * Digest::kSize;

v1::RevisionState StateToProto(RevisionState state) {
  switch (state) {
    case RevisionState::kServing:
      return v1::REVISION_STATE_SERVING;
    case RevisionState::kShadow:
      return v1::REVISION_STATE_SHADOW;
    case RevisionState::kRetired:
      return v1::REVISION_STATE_RETIRED;
  }
  return v1::REVISION_STATE_UNSPECIFIED;
}

v1::PlanSummary SummaryOf(const ListedEntry& listed, const StoredPlan& stored) {
  const PlanEntry& entry = *listed.entry;
  const Plan& plan = *stored.plan;
  const Measurements measured = MeasurementsOf(entry, plan);
  v1::PlanSummary summary;
  *summary.mutable_key() = ToProto(listed.key);
  summary.set_name(entry.name);
  summary.set_budget_bytes(plan.budget.value());
  summary.set_makespan_ns(plan.prediction.makespan.value());
  summary.set_revision(plan.revision);
  summary.set_pinned(stored.pinned);
  summary.set_state(StateToProto(stored.state));
  summary.set_frozen(entry.frozen);
  summary.set_status(ToProto(plan.status));
  summary.set_peak_bytes(plan.prediction.peak.value());
  summary.set_solver(plan.provenance.solver);
  summary.set_solver_version(plan.provenance.solver_version);
  summary.set_reports(measured.jobs);
  summary.set_measured_time_ratio(measured.time_ratio);
  summary.set_measured_peak_ratio(measured.peak_ratio);
  return summary;
}

}  // namespace

std::string ToPageToken(const std::optional<PlanKey>& after) {
  if (!after) return "";
  return absl::StrCat(absl::Hex(after->encoding_version, absl::kZeroPad8), after->digest.ToHex());
}

absl::StatusOr<std::optional<PlanKey>> FromPageToken(const std::string& token) {
  if (token.empty()) return std::optional<PlanKey>();
  const bool hex = std::all_of(token.begin(), token.end(),
                               [](unsigned char digit) { return absl::ascii_isxdigit(digit); });
  uint32_t version = 0;
  if (!hex || token.size() != kTokenDigits ||
      !absl::SimpleHexAtoi(token.substr(0, kVersionDigits), &version)) {
    return FieldError("page_token", absl::StrCat(token.size(), " bytes"),
                      "must be one that a page before has returned");
  }
  const absl::StatusOr<Digest> digest =
      DigestFromProto("page_token", absl::HexStringToBytes(token.substr(kVersionDigits)));
  if (!digest.ok()) return digest.status();
  return std::optional<PlanKey>(PlanKey{static_cast<int32_t>(version), *digest});
}

void FillPage(const EntryPage& page, const RequestLimits& limits, v1::ListPlansResponse* response) {
  constexpr int64_t kFraming = kTokenDigits + 8;  // the token's field
  size_t left = static_cast<size_t>(std::max(limits.max_message_bytes, kFraming) - kFraming);
  response->set_next_page_token(ToPageToken(page.next_after));
  std::optional<PlanKey> last;
  for (const ListedEntry& listed : page.entries) {
    v1::ListPlansResponse of_entry;
    for (const StoredPlan& stored : listed.entry->plans) {
      *of_entry.add_plans() = SummaryOf(listed, stored);
    }
    const size_t size = of_entry.ByteSizeLong();
    if (last && size > left) return response->set_next_page_token(ToPageToken(last));
    left -= std::min(left, size);
    last = listed.key;
    response->MergeFrom(of_entry);
  }
}

}  // namespace stowage
