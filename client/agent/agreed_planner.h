// Plans for a job of many ranks: one asks, with the least budget and the greatest costs of all, and all
// prepare the same schedule, or none does.
//
// A plan by the greatest costs of all need not be the one by which the slowest rank is fastest. Where the
// plan was made in the job, the rank that is slowest by it makes one of its own times, and all take
// whichever leaves the slowest of them the shorter step. A server's plan stays: others have it, too.
//
// What may communicate is measured by all ranks or by none, in as many passes.
//
// Every call is one of all ranks, for the same batch shape, in the same order.
#ifndef STOWAGE_CLIENT_AGENT_AGREED_PLANNER_H_
#define STOWAGE_CLIENT_AGENT_AGREED_PLANNER_H_

#include <optional>
#include <string>

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

  // As those of BatchPlanner; an error of one rank is one of all. `off`: this rank's kill switch is on. Where any rank's is,
  // none measures or plans: nullopt.
  absl::StatusOr<std::optional<PreparedPlan>> Plan(const Batch& batch, const Budget& budget,
                                                   bool off, PlannedShape* shape);
  absl::StatusOr<std::optional<PreparedPlan>> Refresh(const Batch& batch, const Budget& budget,
                                                      bool off, PlannedShape* shape);

  // In place of either, on a rank that cannot come so far: the others get its error. Returns it, or that of another rank.
  absl::Status Refuse(const absl::Status& error);

 private:
  class Source;

  absl::StatusOr<std::optional<PreparedPlan>> Make(const Batch& batch, const Budget& budget,
                                                   bool refresh, bool off, PlannedShape* shape);
  absl::StatusOr<AgreedTerms> Agree(const absl::Status& measured, const Budget& budget,
                                    const PlannedShape& shape);
  absl::StatusOr<AgreedTerms> AgreeWithTimes(const Batch& batch, const Budget& budget,
                                             PlannedShape* shape);
  // `terms` are those of the answer afterwards: times may have been measured for it.
  absl::StatusOr<ClientPlan> Lead(const Batch& batch, const Budget& budget, bool refresh,
                                  AgreedTerms* terms, PlannedShape* shape);
  absl::StatusOr<ClientPlan> Follow(const Batch& batch, const Budget& budget, AgreedTerms* terms,
                                    PlannedShape* shape);
  absl::StatusOr<ClientPlan> ForTheSlowest(ClientPlan answer, const AgreedTerms& terms,
                                           const PlannedShape& shape);
  // By this rank's times; empty where they are those of all, or there is none.
  std::string PlanByOwnTimes(ClientPlan answer, const AgreedTerms& terms,
                             const PlannedShape& shape) const;
  absl::StatusOr<PreparedPlan> PrepareAll(const absl::StatusOr<ClientPlan>& answer,
                                          const Batch& batch, const PlannedShape& shape);

  BatchPlanner* const planner_;
  PlanAgreement* const agreement_;
  const AgentOptions* const options_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGREED_PLANNER_H_
