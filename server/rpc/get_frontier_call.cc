#include "server/rpc/get_frontier_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "server/entries/frontier_under.h"
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
  response->set_search_complete(info.search_complete);
}

}  // namespace

void GetFrontierCall::Begin(const v1::GetFrontierRequest& request) {
  if (request.max_points() < 0 || request.max_points() > static_cast<int>(kMostPoints)) {
    return End(FieldError("max_points", request.max_points(),
                          absl::StrCat("must be in [0, ", kMostPoints, "]")));
  }
  v1::Budget any;  // not looked at
  any.set_share_of_store_all(1.0);
  absl::StatusOr<ComputeRequest> asked = ToComputeRequest(request.profile(), any, request.options(),
                                                          limits_, record_.caller()->tenant);
  if (!asked.ok()) return End(asked.status());
  Sign(&*asked);
  const size_t most =
      request.max_points() == 0 ? kMostPoints : static_cast<size_t>(request.max_points());
  const CallHandle handle = handle_;
  handle.Set(planning_->GetFrontier(
      *asked, [this, most](const absl::StatusOr<ComputeAnswer>& answer) { Answer(answer, most); }));
}

void GetFrontierCall::Answer(const absl::StatusOr<ComputeAnswer>& answer, size_t most) {
  if (!answer.ok()) return End(answer.status());
  End(CatchingBadAlloc([&] {
    v1::GetFrontierResponse response;
    Fill(*answer->frontier, most, &response);
    *response.mutable_key() = ToProto(answer->key);
    record_.SetKey(answer->key);
    return Write(response);
  }));
}

}  // namespace stowage
