#include "server/rpc/plan_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/entries/reports.h"
#include "server/entries/revisions.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr size_t kVersionSize = 4;
constexpr size_t kNumberSize = 8;
constexpr size_t kPositionSize = kVersionSize + Digest::kSize + 2 * kNumberSize;
constexpr size_t kBindingSize = 8;
constexpr size_t kTokenSize = kPositionSize + kBindingSize;
constexpr size_t kTokenText = (kTokenSize + 2) / 3 * 4;  // as base64, at most

void AppendNumber(uint64_t number, size_t size, std::string* bytes) {
  for (size_t i = 0; i < size; ++i) bytes->push_back(static_cast<char>(number >> (8 * i)));
}

uint64_t NumberAt(const std::string& bytes, size_t at, size_t size) {
  uint64_t number = 0;
  for (size_t i = 0; i < size; ++i) {
    number |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  }
  return number;
}

// All of the key: a budget that no revision has.
std::string BytesOf(const PagePosition& position) {
  std::string bytes;
  AppendNumber(static_cast<uint32_t>(position.key.encoding_version), kVersionSize, &bytes);
  bytes += position.key.digest.ToBinary();
  const auto [budget, revision] = position.revision.value_or(std::make_pair(-1, 0));
  AppendNumber(static_cast<uint64_t>(budget), kNumberSize, &bytes);
  AppendNumber(static_cast<uint64_t>(revision), kNumberSize, &bytes);
  return bytes;
}

// What a token ends with that is of this list: one of another list starts at the wrong place.
std::string BindingOf(const std::string& bytes, const std::string& list) {
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

v1::PlanSummary SummaryOf(const ListedEntry& listed, const std::string& etag,
                          const StoredPlan& stored) {
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
  summary.set_tenant(entry.tenant);
  summary.set_etag(etag);
  if (const auto begun = BegunAt(entry.generation)) {
    summary.mutable_create_time()->set_seconds(*begun);
  }
  if (entry.updated_s) summary.mutable_update_time()->set_seconds(*entry.updated_s);
  return summary;
}

std::pair<int64_t, int64_t> RevisionOf(const StoredPlan& stored) {
  return {stored.plan->budget.value(), stored.plan->revision};
}

}  // namespace

std::string ToPageToken(const std::optional<PagePosition>& after, const std::string& list) {
  if (!after) return "";
  const std::string bytes = BytesOf(*after);
  return absl::WebSafeBase64Escape(absl::StrCat(bytes, BindingOf(bytes, list)));
}

absl::StatusOr<std::optional<PagePosition>> FromPageToken(const std::string& token,
                                                          const std::string& list) {
  if (token.empty()) return std::optional<PagePosition>();
  std::string bytes;
  const bool whole = absl::WebSafeBase64Unescape(token, &bytes) && bytes.size() == kTokenSize;
  const std::string position = bytes.substr(0, std::min(bytes.size(), kPositionSize));
  if (!whole || bytes.substr(position.size()) != BindingOf(position, list)) {
    return FieldError("page_token", absl::StrCat(token.size(), " bytes"),
                      "must be one that a page before of the same list has returned");
  }
  const absl::StatusOr<Digest> digest =
      DigestFromProto("page_token", position.substr(kVersionSize, Digest::kSize));
  if (!digest.ok()) return digest.status();
  constexpr size_t kNumbers = kVersionSize + Digest::kSize;
  const auto budget = static_cast<int64_t>(NumberAt(position, kNumbers, kNumberSize));
  const auto revision =
      static_cast<int64_t>(NumberAt(position, kNumbers + kNumberSize, kNumberSize));
  PagePosition after;
  after.key = PlanKey{static_cast<int32_t>(NumberAt(position, 0, kVersionSize)), *digest};
  if (budget >= 0) after.revision.emplace(budget, revision);
  return std::make_optional(after);
}

PageWriter::PageWriter(const PlanFilter& filter, size_t most, const RequestLimits& limits,
                       v1::ListPlansResponse* response)
    : filter_(filter), most_(most), response_(response) {
  constexpr int64_t kFraming = kTokenText + 8 + 64;  // the token's field, and what is unreachable
  bytes_left_ = static_cast<size_t>(std::max(limits.max_message_bytes, kFraming) - kFraming);
}

bool PageWriter::Add(const ListedEntry& listed,
                     const std::optional<std::pair<int64_t, int64_t>>& revision) {
  constexpr size_t kTag = 4;  // and the length of a summary
  std::vector<const StoredPlan*> plans;
  for (const StoredPlan& stored : listed.entry->plans) plans.push_back(&stored);
  std::sort(plans.begin(), plans.end(), [](const StoredPlan* a, const StoredPlan* b) {
    return RevisionOf(*a) < RevisionOf(*b);
  });
  const std::string etag = EtagOf(*listed.entry);
  for (const StoredPlan* const stored : plans) {
    if (revision && RevisionOf(*stored) <= *revision) continue;
    v1::PlanSummary summary = SummaryOf(listed, etag, *stored);
    if (filter_.Takes(summary)) {
      const size_t size = summary.ByteSizeLong() + kTag;
      const bool first = response_->plans().empty();
      const bool fits = static_cast<size_t>(response_->plans_size()) < most_ && size <= bytes_left_;
      if (!first && !fits) return false;
      bytes_left_ -= std::min(bytes_left_, size);
      *response_->add_plans() = std::move(summary);
    }
    position_ = PagePosition{listed.key, RevisionOf(*stored)};
  }
  position_ = PagePosition{listed.key, std::nullopt};
  return true;
}

}  // namespace stowage
