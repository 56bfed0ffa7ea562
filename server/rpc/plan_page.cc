#include "server/rpc/plan_page.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/planning/reports.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr size_t kVersionSize = 4;
constexpr size_t kBindingSize = 8;
constexpr size_t kTokenSize = kVersionSize + Digest::kSize + kBindingSize;
constexpr size_t kTokenText = (kTokenSize + 2) / 3 * 4;  // as base64, at most

std::string BytesOf(const PlanKey& key) {
  std::string bytes;
  for (size_t i = 0; i < kVersionSize; ++i) {
    bytes.push_back(static_cast<char>(static_cast<uint32_t>(key.encoding_version) >> (8 * i)));
  }
  return bytes + key.digest.ToBinary();
}

// What a token ends with that is of this list: one of another list starts at the wrong place.
std::string BindingOf(const std::string& bytes, const std::optional<std::string>& tenant) {
  const std::string list = tenant ? absl::StrCat("tenant ", *tenant) : "all";
  return Sha256(absl::StrCat("page ", bytes, list)).ToBinary().substr(0, kBindingSize);
}

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

std::string ToPageToken(const std::optional<PlanKey>& after,
                        const std::optional<std::string>& tenant) {
  if (!after) return "";
  const std::string bytes = BytesOf(*after);
  return absl::WebSafeBase64Escape(absl::StrCat(bytes, BindingOf(bytes, tenant)));
}

absl::StatusOr<std::optional<PlanKey>> FromPageToken(const std::string& token,
                                                     const std::optional<std::string>& tenant) {
  if (token.empty()) return std::optional<PlanKey>();
  std::string bytes;
  const bool whole = absl::WebSafeBase64Unescape(token, &bytes) && bytes.size() == kTokenSize;
  const std::string key = bytes.substr(0, std::min(bytes.size(), kTokenSize - kBindingSize));
  if (!whole || bytes.substr(key.size()) != BindingOf(key, tenant)) {
    return FieldError("page_token", absl::StrCat(token.size(), " bytes"),
                      "must be one that a page before of the same list has returned");
  }
  uint32_t version = 0;
  for (size_t i = 0; i < kVersionSize; ++i) {
    version |= uint32_t{static_cast<uint8_t>(key[i])} << (8 * i);
  }
  const absl::StatusOr<Digest> digest = DigestFromProto("page_token", key.substr(kVersionSize));
  if (!digest.ok()) return digest.status();
  return std::optional<PlanKey>(PlanKey{static_cast<int32_t>(version), *digest});
}

void FillPage(const EntryPage& page, const std::optional<std::string>& tenant,
              const RequestLimits& limits, v1::ListPlansResponse* response) {
  constexpr int64_t kFraming = kTokenText + 8;  // the token's field
  size_t left = static_cast<size_t>(std::max(limits.max_message_bytes, kFraming) - kFraming);
  response->set_next_page_token(ToPageToken(page.next_after, tenant));
  std::optional<PlanKey> last;
  for (const ListedEntry& listed : page.entries) {
    v1::ListPlansResponse of_entry;
    for (const StoredPlan& stored : listed.entry->plans) {
      *of_entry.add_plans() = SummaryOf(listed, stored);
    }
    const size_t size = of_entry.ByteSizeLong();
    if (last && size > left) return response->set_next_page_token(ToPageToken(last, tenant));
    left -= std::min(left, size);
    last = listed.key;
    response->MergeFrom(of_entry);
  }
}

}  // namespace stowage
