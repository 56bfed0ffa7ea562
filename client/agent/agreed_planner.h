// Plans for a job of many ranks: one asks, with the least budget and the greatest costs of all, and all
// prepare the same schedule, or none does.
//
// Every call is one of all ranks, for the same batch shape, in the same order.
#ifndef STOWAGE_CLIENT_AGENT_AGREED_PLANNER_H_
#define STOWAGE_CLIENT_AGENT_AGREED_PLANNER_H_

#include "absl/status/statusor.h"
#include "client/agent/agent_options.h"
#include "client/agent/agreed_terms.h"
#include "client/agent/batch.h"
#include "client/agent/batch_planner.h"
#include "client/agent/plan_agreement.h"
#include "client/agent/plan_table.h"
#include "solvers/model/budget.h"

namespace stowage {

// Not thread-safe. All that it is made of outlives it.
class AgreedPlanner {
 public:
  AgreedPlanner(BatchPlanner* planner, PlanAgreement* agreement, const AgentOptions* options)
      : planner_(planner), agreement_(agreement), options_(options) {}

  // As those of BatchPlanner; an error of one rank is one of all.
  absl::StatusOr<PreparedPlan> Plan(const Batch& batch, const Budget& budget, PlannedShape* shape);
  absl::StatusOr<PreparedPlan> Refresh(const Batch& batch, const Budget& budget,
                                       PlannedShape* shape);

 private:
  class Source;

  absl::StatusOr<PreparedPlan> Make(const Batch& batch, const Budget& budget, bool refresh,
                                    PlannedShape* shape);
  absl::StatusOr<AgreedTerms> Agree(const absl::Status& measured, const Budget& budget,
                                    const PlannedShape& shape);
  absl::StatusOr<AgreedTerms> AgreeWithTimes(const Batch& batch, Bytes budget, PlannedShape* shape);
  absl::StatusOr<ClientPlan> Lead(const Batch& batch, const AgreedTerms& terms, bool refresh,
                                  PlannedShape* shape);
  absl::StatusOr<ClientPlan> Follow(const Batch& batch, AgreedTerms terms, PlannedShape* shape);
  absl::StatusOr<PreparedPlan> PrepareAll(const absl::StatusOr<ClientPlan>& answer,
                                          const Batch& batch, const PlannedShape& shape);

  BatchPlanner* const planner_;
  PlanAgreement* const agreement_;
  const AgentOptions* const options_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGREED_PLANNER_H_
