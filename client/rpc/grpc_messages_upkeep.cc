#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/rpc/grpc_messages.h"
#include "proto/codec/codec.h"
#include "proto/codec/enum_map.h"
#include "proto/codec/utf8.h"

namespace stowage {
namespace {

constexpr EnumMap<v1::ReportVerdict, ExecutionVerdict, 3> kVerdicts{{
    {v1::REPORT_VERDICT_ACCEPTED, ExecutionVerdict::kAccepted},
    {v1::REPORT_VERDICT_OUTLIER, ExecutionVerdict::kOutlier},
    {v1::REPORT_VERDICT_ABSURD, ExecutionVerdict::kAbsurd},
}};

constexpr EnumMap<v1::RevisionState, ListedPlan::State, 3> kStates{{
    {v1::REVISION_STATE_SERVING, ListedPlan::State::kServing},
    {v1::REVISION_STATE_SHADOW, ListedPlan::State::kShadow},
    {v1::REVISION_STATE_RETIRED, ListedPlan::State::kRetired},
}};

bool IsRatio(double value) { return std::isfinite(value) && value >= 0; }

bool InRange(const ListedPlan& plan) {
  return plan.revision.budget >= Bytes(0) && plan.revision.revision >= 0 &&
         plan.makespan >= Nanos(0) && plan.peak >= Bytes(0) && plan.reports >= 0 &&
         IsRatio(plan.time_ratio) && IsRatio(plan.peak_ratio);
}

// False: it cannot be.
bool ReadTime(const google::protobuf::Timestamp& time,
              std::optional<std::chrono::system_clock::time_point>* read) {
  // More would be past the end of a clock of nanoseconds.
  constexpr int64_t kLatest = int64_t{1} << 33;
  if (time.seconds() < 0 || time.seconds() > kLatest) return false;
  *read = std::chrono::system_clock::time_point(std::chrono::seconds(time.seconds()));
  return true;
}

absl::StatusOr<ListedPlan> ReadSummary(const v1::PlanSummary& message) {
  ListedPlan plan;
  const absl::StatusOr<PlanKey> key = ReadKey(message.key());
  if (!key.ok()) return key.status();
  absl::Status status = FromWire(kStates, "plans.state", message.state(), &plan.state);
  if (!status.ok()) return BrokenContract(std::string(status.message()));
  const absl::StatusOr<PlanStatus> plan_status = FromProto(message.status());
  if (!plan_status.ok()) return BrokenContract(std::string(plan_status.status().message()));
  plan.status = *plan_status;
  plan.revision = {*key, Bytes(message.budget_bytes()), message.revision()};
  plan.name = message.name();
  plan.pinned = message.pinned();
  plan.frozen = message.frozen();
  plan.makespan = Nanos(message.makespan_ns());
  plan.peak = Bytes(message.peak_bytes());
  plan.solver = message.solver();
  plan.solver_version = message.solver_version();
  plan.reports = message.reports();
  plan.time_ratio = message.measured_time_ratio();
  plan.peak_ratio = message.measured_peak_ratio();
  plan.tenant = message.tenant();
  plan.etag = message.etag();
  const bool times =
      (!message.has_create_time() || ReadTime(message.create_time(), &plan.created)) &&
      (!message.has_update_time() || ReadTime(message.update_time(), &plan.updated));
  if (!times) return BrokenContract("a time that cannot be");
  if (!InRange(plan)) return BrokenContract("figures of a listed plan that cannot be");
  return plan;
}

// Of a line of an export; nothing for any other text. What a record says is the servers' matter.
std::optional<PlanKey> KeyOfDecision(const std::string& line) {
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  if (words.size() != 3) return std::nullopt;
  // SimpleAtoi takes spaces and ends of lines around a number.
  const bool digits = std::all_of(words[0].begin(), words[0].end(), absl::ascii_isdigit);
  PlanKey key;
  const std::optional<Digest> digest = DigestFromHex(words[1]);
  if (!digits || !absl::SimpleAtoi(words[0], &key.encoding_version) || !digest) return std::nullopt;
  key.digest = *digest;
  const std::string& record = words[2];
  const bool hex = std::all_of(record.begin(), record.end(), absl::ascii_isxdigit);
  if (!hex || record.empty() || record.size() % 2 != 0) return std::nullopt;
  return key;
}

}  // namespace

v1::ExplainPlanRequest MakeExplainPlanRequest(const PlanKey& key, const Budget& budget) {
  v1::ExplainPlanRequest request;
  *request.mutable_key() = ToProto(key);
  *request.mutable_budget() = ToProto(budget);
  return request;
}

v1::ReportExecutionRequest MakeReportExecutionRequest(const ExecutionMeasurement& measurement,
                                                      const std::string& job) {
  v1::ReportExecutionRequest request;
  *request.mutable_key() = ToProto(measurement.key);
  request.set_plan_digest(measurement.plan_digest.ToBinary());
  request.set_revision(measurement.revision);
  request.set_steps(measurement.steps);
  request.set_measured_step_time_ns(measurement.step_time.value());
  request.set_measured_peak_bytes(measurement.peak.value());
  request.set_budget_bytes(measurement.budget.value());
  request.set_measured_reserved_peak_bytes(measurement.reserved_peak.value());
  request.set_offloaded_bytes(measurement.offloaded.value());
  request.set_prefetched_bytes(measurement.prefetched.value());
  request.set_job(ToValidUtf8(job));
  return request;
}

v1::ListPlansRequest MakeListPlansRequest(const ListQuery& query) {
  v1::ListPlansRequest request;
  request.set_page_size(query.page_size);
  request.set_page_token(query.page_token);
  if (query.key) *request.mutable_key() = ToProto(*query.key);
  request.set_filter(ToValidUtf8(query.filter));
  request.set_return_partial_success(query.partial);
  return request;
}

absl::StatusOr<std::string> ReadResponse(const v1::ExplainPlanResponse& response) {
  return response.explanation();
}

absl::StatusOr<ExecutionVerdict> ReadResponse(const v1::ReportExecutionResponse& response) {
  ExecutionVerdict verdict = ExecutionVerdict::kAccepted;
  const absl::Status status = FromWire(kVerdicts, "verdict", response.verdict(), &verdict);
  if (!status.ok()) return BrokenContract(std::string(status.message()));
  return verdict;
}

absl::StatusOr<PlanPage> ReadResponse(const v1::ListPlansResponse& response) {
  PlanPage page;
  page.next_page_token = response.next_page_token();
  page.unreachable.assign(response.unreachable().begin(), response.unreachable().end());
  for (const v1::PlanSummary& message : response.plans()) {
    absl::StatusOr<ListedPlan> plan = ReadSummary(message);
    if (!plan.ok()) return plan.status();
    page.plans.push_back(*std::move(plan));
  }
  return page;
}

absl::StatusOr<bool> ReadResponse(const v1::DeletePlanResponse& response) {
  return response.deleted();
}

v1::ExportDecisionsRequest MakeExportDecisionsRequest(const std::string& page_token,
                                                      int32_t page_size) {
  v1::ExportDecisionsRequest request;
  request.set_page_size(page_size);
  request.set_page_token(ToValidUtf8(page_token));
  return request;
}

v1::ImportDecisionsRequest MakeImportDecisionsRequest(const std::vector<std::string>& decisions) {
  v1::ImportDecisionsRequest request;
  for (const std::string& decision : decisions) request.add_decisions(ToValidUtf8(decision));
  return request;
}

absl::StatusOr<ExportedDecisions> ReadResponse(const v1::ExportDecisionsResponse& response) {
  ExportedDecisions page;
  page.next_page_token = response.next_page_token();
  std::optional<PlanKey> before;
  for (const std::string& decision : response.decisions()) {
    const std::optional<PlanKey> key = KeyOfDecision(decision);
    if (!key) return BrokenContract("a decision that is not VERSION DIGEST RECORD");
    if (before && *key < *before) return BrokenContract("decisions that do not rise by key");
    before = key;
    page.decisions.push_back(decision);
  }
  return page;
}

absl::StatusOr<ImportedDecisions> ReadResponse(const v1::ImportDecisionsResponse& response) {
  if (response.taken() < 0 || response.known() < 0) {
    return BrokenContract("counts of decisions that cannot be");
  }
  return ImportedDecisions{response.taken(), response.known()};
}

absl::StatusOr<Capabilities> ReadResponse(const v1::GetCapabilitiesResponse& response) {
  Capabilities capabilities;
  capabilities.server_version = response.server_version();
  capabilities.key_encoding_version = response.key_encoding_version();
  for (const v1::SolverInfo& solver : response.solvers()) {
    capabilities.solvers.push_back({solver.name(), solver.description(), solver.schedule_class()});
  }
  capabilities.max_message = Bytes(response.max_message_bytes());
  capabilities.max_stages = response.max_stages();
  capabilities.max_vertices = response.max_vertices();
  capabilities.implemented_rpcs.assign(response.implemented_rpcs().begin(),
                                       response.implemented_rpcs().end());
  capabilities.build = response.build();
  capabilities.identity = response.identity();
  capabilities.tenant = response.tenant();
  capabilities.role = response.role();
  if (capabilities.key_encoding_version < 1 || capabilities.max_message < Bytes(0) ||
      capabilities.max_stages < 0 || capabilities.max_vertices < 0) {
    return BrokenContract("limits or versions that cannot be");
  }
  return capabilities;
}

}  // namespace stowage
