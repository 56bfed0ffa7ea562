// Makes plans for batches of one model: finds out what must be known of it, asks, and prepares steps by
// what comes back. Keeps nothing but what it found, in the shape that it is given.
//
// Asking by key takes what shapes tell, in milliseconds. A plan that comes so is one that the server
// predicts to fit under the workspaces of those who measured (client/rpc/plan_client.h); its first steps
// are watched like all others, and drift or a lack of memory leads to a plan by what is measured here.
// Shapes are asked no more once they were refused, or turned out to be other than what was measured.
#ifndef STOWAGE_CLIENT_AGENT_BATCH_PLANNER_H_
#define STOWAGE_CLIENT_AGENT_BATCH_PLANNER_H_

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/adopted_plan.h"
#include "client/agent/agent_options.h"
#include "client/agent/batch.h"
#include "client/agent/device_link.h"
#include "client/agent/event_sink.h"
#include "client/agent/plan_table.h"
#include "client/agent/trained_model.h"
#include "client/rpc/plan_client.h"
#include "client/rpc/plan_connection.h"
#include "solvers/base/tracer.h"
#include "solvers/model/budget.h"

namespace stowage {

struct PreparedPlan {
  AdoptedPlan adopted;
  std::unique_ptr<PlannedStep> step;  // null unless a plan was found
};

// Not thread-safe. All that it is made of outlives it. Events: ProfileTakenEvent, CacheHitEvent,
// PlannedEvent.
class BatchPlanner {
 public:
  BatchPlanner(const TrainedModel* model, PlanConnection* connection, const AgentOptions* options,
               EventSink* events);

  // Measures thoroughly, whatever is known already. Errors: TrainedModel::Measure.
  absl::Status Profile(const Batch& batch, PlannedShape* shape);

  // By key first, with what shapes tell unless memory ran out at this shape; with a timed profile, the
  // measured one or else a quick one, when nothing that fits is cached. The evaluator has accepted what is
  // prepared on this job's own profile. Errors: TrainedModel, PlanConnection.
  absl::StatusOr<PreparedPlan> Plan(const Batch& batch, const Budget& budget, PlannedShape* shape);

  // With a thorough profile in any case, which a server keeps.
  absl::StatusOr<PreparedPlan> Refresh(const Batch& batch, const Budget& budget,
                                       PlannedShape* shape);

  // The same in this process, asking nobody; no event but ProfileTakenEvent and PlannedEvent. Errors: TrainedModel, MakePlan.
  absl::StatusOr<PreparedPlan> PlanHere(const Batch& batch, const Budget& budget,
                                        PlannedShape* shape);

  // See TrainedModel.
  bool may_communicate() const { return model_->may_communicate(); }

  // What a server keeps the plans of this batch under.
  absl::StatusOr<PlanKey> KeyOf(const Batch& batch, PlannedShape* shape);

  // Plans from now on, of all batches, use no more host memory than that; 0: they copy nothing.
  void LimitHostMemory(Bytes limit) { host_memory_ = std::min(host_memory_, limit); }
  Bytes host_memory() const { return host_memory_; }

  // A request's own span, below the job's; records nothing without a tracer.
  Span StartRequest(const char* name) const;
  // Of a request, made in that span or else in the job's.
  CallOptions CallWithin(std::chrono::milliseconds timeout, const Span& span = Span()) const;

  // The parts of the above. What is known without having run anything; null if that does not do.
  const stowage::Profile* Shapes(const Batch& batch, PlannedShape* shape);
  // Measures bytes, or times as well, unless that has been done; `anew`: also then, as if nothing had been.
  absl::Status EnsureBytes(const Batch& batch, PlannedShape* shape, bool anew = false);
  absl::Status EnsureTimes(const Batch& batch, PlannedShape* shape, bool anew = false);
  // `refresh`: with a full profile in any case.
  absl::StatusOr<ClientPlan> Ask(ProfileSource* source, const Budget& budget, bool refresh);
  // Tells what the answer is, and makes it ready for steps. An error stays what it is.
  absl::StatusOr<PreparedPlan> Prepare(absl::StatusOr<ClientPlan> answer, const Batch& batch,
                                       const PlannedShape& shape);

 private:
  class Source;

  absl::Status Measure(const Batch& batch, ProfileOptions options, PlannedShape* shape);
  void CompareWithShapes(PlannedShape* shape);
  void WriteLinkIn(std::optional<stowage::Profile>* profile) const;
  void TellOf(const ClientPlan& answer, const PlannedShape& shape);

  const TrainedModel* const model_;
  const AgentOptions* const options_;
  EventSink* const events_;
  PlanClient client_;
  Bytes host_memory_ = kAllHostMemory;
  std::string not_shapes_;  // why shapes do not tell this model's structure; empty while they do
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_BATCH_PLANNER_H_
