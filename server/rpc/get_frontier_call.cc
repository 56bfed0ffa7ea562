#include "server/rpc/get_frontier_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/planning/frontier_under.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

void Fill(const Frontier& frontier, size_t most, v1::GetFrontierResponse* response) {
  const FrontierInfo& info = frontier.info();
  const std::vector<size_t> chosen = ChooseCompact(frontier.points(), most);
  for (const size_t i : chosen) {
    const Frontier::Point& point = frontier.points()[i];
    v1::FrontierPoint* filled = response->add_points();
    filled->set_budget_bytes(point.peak.value());
    filled->set_makespan_ns(point.makespan.value());
    filled->set_peak_bytes(point.peak.value());
  }
  response->set_solver(info.solver);
  response->set_schedule_class(info.schedule_class);
  response->set_least_budget_bytes(info.least_budget.value());
  response->set_exact(info.exact && chosen.size() == frontier.points().size());
}

}  // namespace

GetFrontierCall::GetFrontierCall(const v1::GetFrontierRequest* request, CallDeadline deadline,
                                 PlanningService* planning, const RpcRecord& record,
                                 const RequestLimits& limits, v1::GetFrontierResponse* response)
    : PlanningCall(planning, record, limits),
      request_(request),
      deadline_(deadline),
      response_(response) {
  Start(request->ByteSizeLong(), /*takes_time=*/true);
}

void GetFrontierCall::Begin(MayWait wait) {
  if (request_->max_points() < 0 || request_->max_points() > static_cast<int>(kMostPoints)) {
    return End(FieldError("max_points", request_->max_points(),
                          absl::StrCat("must be in [0, ", kMostPoints, "]")));
  }
  v1::Budget any;  // not looked at
  any.set_share_of_store_all(1.0);
  absl::StatusOr<ComputeRequest> request = ToComputeRequest(
      request_->profile(), any, request_->options(), limits_, record_.caller()->tenant);
  if (!request.ok()) return End(request.status());
  request->deadline = deadline_;
  request->may_wait = wait;
  request->identity = record_.caller()->identity;
  const CallHandle handle = handle_;
  handle.Set(planning_->GetFrontier(
      *request, [this](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer); }));
}

void GetFrontierCall::Answer(const absl::StatusOr<ComputeAnswer>& answer) {
  if (!answer.ok()) return End(answer.status());
  const int most =
      request_->max_points() == 0 ? static_cast<int>(kMostPoints) : request_->max_points();
  Fill(*answer->frontier, static_cast<size_t>(most), response_);
  *response_->mutable_key() = ToProto(answer->key);
  record_.SetKey(answer->key);
  End(*response_);
}

}  // namespace stowage
