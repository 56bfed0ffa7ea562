// What a training job holds: it measures the model, asks for plans, checks them with the evaluator, trains
// by them, and sees to it that they stay true.
//
//   stowage::Agent agent(&model, options);
//   auto plan = agent.Plan(input, target, *stowage::ParseBudget("60%"));
//   auto step = agent.Step(input, target);   // as often as there are batches, of this shape or another
//
// or, in a loop that has its own loss and backward:
//
//   auto output = agent.Forward({{input}, target});   // an error here is what planning and forward give
//   criterion(output->front(), target).backward();    // throws what fails here
//
// Not thread-safe; one agent per model and training thread.
#ifndef STOWAGE_CLIENT_AGENT_AGENT_H_
#define STOWAGE_CLIENT_AGENT_AGENT_H_

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/adopted_plan.h"
#include "client/agent/agent_options.h"
#include "client/agent/agreed_planner.h"
#include "client/agent/batch.h"
#include "client/agent/batch_planner.h"
#include "client/agent/event_sink.h"
#include "client/agent/plan_agreement.h"
#include "client/agent/plan_table.h"
#include "client/agent/step_arenas.h"
#include "client/agent/trained_model.h"
#include "client/rpc/plan_connection.h"
#include "client/torch/execute/added_gradients.h"
#include "client/torch/execute/backward_end.h"
#include "client/torch/execute/step_failure.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/offload/later.h"
#include "solvers/model/budget.h"
#include "solvers/model/digest.h"
#include "solvers/schedule/measured_step.h"

namespace stowage {

// What the steps of an agent were.
struct StepCounts {
  int64_t planned = 0;    // by a plan for their shape
  int64_t by_larger = 0;  // by one for a larger shape
  int64_t shadow = 0;     // plain, in shadow mode
  int64_t plain = 0;      // plain, switched off
  int64_t dropped = 0;    // begun by Forward, and the graph went without a backward
  int64_t finished = 0;   // by the least plan, after their own had failed
};

// Every call is INVALID_ARGUMENT while the options are (CheckAgentOptions).
class Agent {
 public:
  // The model must outlive the agent. What it does not list, where a stage or node has no op_kind, is found with the first batch, by
  // running it forward once more (client/torch/profile/found_state.h). Install the TrackingAllocator first
  // (client/torch/memory/tracking_allocator.h).
  Agent(const ChainModel* model, AgentOptions options);
  Agent(const GraphModel* model, AgentOptions options);
  // The same over a connection of the caller's, say a mock; null is one to options.server.
  Agent(const ChainModel* model, std::unique_ptr<PlanConnection> connection, AgentOptions options);
  Agent(std::unique_ptr<TrainedModel> model, std::unique_ptr<PlanConnection> connection,
        AgentOptions options);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Measures the model with times, now and thoroughly, whatever is known already. Plan does it by
  // itself, quickly, when it must. Errors: ProfileChain, ProfileGraph.
  absl::Status Profile(const Batch& batch);
  absl::Status Profile(const at::Tensor& input, const Tensors& target);

  // Takes a profile that this job has kept, of an earlier start say, for that of this shape of batch:
  // then a plan that is cached takes milliseconds. INVALID_ARGUMENT if it is not of this model or of such
  // a batch, FAILED_PRECONDITION if it is of another device, framework or math settings. That the code of
  // the model is still the same is for the caller to know.
  absl::Status UseProfile(const Batch& batch, stowage::Profile profile);

  // Gets a plan for batches of this shape: by key first, and with a timed profile only when nothing
  // that fits is cached. Adopts it if it is FOUND and the evaluator accepts it on this job's own profile;
  // otherwise (PROVEN_INFEASIBLE, NOT_FOUND) there is no plan to step by. Budgets in shares are shares of
  // this job's own profile; of a plan that came by shapes alone (AgentOptions::plan_by_shapes), of what
  // the server knows of plain training. Batches of other shapes are planned within the same bytes, when they come.
  // Switched off, the answer is NOT_FOUND, with why, and once that is over steps plan within that budget; of several
  // ranks, once Plan is called again. Errors: ProfileChain, ProfileGraph, PlanConnection, Executor::Create.
  absl::StatusOr<AdoptedPlan> Plan(const Batch& batch, const Budget& budget);
  absl::StatusOr<AdoptedPlan> Plan(const at::Tensor& input, const Tensors& target,
                                   const Budget& budget);
  // Within options.budget or what is left of options.device_limit; FAILED_PRECONDITION without either.
  absl::StatusOr<AdoptedPlan> Plan(const Batch& batch);

  // The same with a timed profile in any case, which the server keeps: what AdoptedPlan::profile_wanted asks
  // for. Steps see to it by themselves (AgentOptions::wanted_profile_every).
  absl::StatusOr<AdoptedPlan> Refresh(const Batch& batch, const Budget& budget);
  absl::StatusOr<AdoptedPlan> Refresh(const at::Tensor& input, const Tensors& target,
                                      const Budget& budget);

  // Plan within the budget of a Token that this job kept, and the host memory that it had come to; ResumedEvent says whether the
  // plan is still the same. INVALID_ARGUMENT for what is no token; else Plan. Of several ranks each needs a token: one of
  // the job, kept by any of them, does for all, also for another number of ranks.
  absl::StatusOr<AdoptedPlan> Resume(const std::string& token, const Batch& batch);
  // For the job's own checkpoint: the plan of the latest Step, or Plan that found one, see plan_token.h; empty
  // without one.
  std::string Token();

  // One step by the plan for this shape of batch, which is made first where there is none. Adds to the
  // parameters' gradients. FAILED_PRECONDITION where nothing fits, or nobody ever said within what;
  // errors of Plan; else those of Executor::Step and what they leave:
  // above all, the gradients of a failed step are for the caller to zero. After RESOURCE_EXHAUSTED the
  // next step of this shape begins with a smaller plan (OutOfMemoryOptions). With options.agreement a step that runs out
  // of memory ends well, by the least plan, where that fits the budget and no must_keep part has run.
  //
  // It waits for nothing that plain training does not wait for. How long a step took is noted, for drift, reports and
  // shadow events, with the first call after the device has done it, in the order of the steps: on the CPU with Step
  // itself, elsewhere one step later or so, of the last steps with Report, which waits for them. What no call comes for is
  // not noted.
  absl::StatusOr<StepReport> Step(Batch batch);
  absl::StatusOr<StepReport> Step(const at::Tensor& input, const Tensors& target);

  // The forward of a step, by the same plan, whose loss and backward are the caller's: the outputs of the model as
  // PlannedModule::ForwardAll returns them, in an ordinary graph. The batch has the target that the profile's loss reads,
  // also where the caller's own does not read it.
  //
  // What fails before the backward comes as a status, as of Step; what fails in the backward is thrown there, as by
  // PlannedModule. How the step ended, at the end of its first backward or when its graph is dropped, the agent notes as
  // that of a Step, with its next call, how long it took with the first after the device has done it: counts, events, drift, reports, and a smaller plan after memory ran out, be it in
  // the forward, in the backward, or in the caller's loss. There is no retry_step. Memory and time are those from here to
  // the end of the backward, so the caller's loss is in them; of steps that overlap (a forward before the backward of
  // another, an evaluation in between) they are not looked at. Where nothing is to be trained, as under NoGradGuard, it
  // is plain and no step. StepReport::loss of such a step is 0 where the loss is the caller's. Regions
  // (AgentOptions::arena) serve none of them.
  absl::StatusOr<std::vector<at::Tensor>> Forward(Batch batch);
  // Of a model with one input and one output.
  absl::StatusOr<at::Tensor> Forward(const at::Tensor& input, const Tensors& target);

  // Tells the server what the latest steps of the latest shape took, as medians, and waits for the device to have done
  // them. FAILED_PRECONDITION before the first step by its plan, or by a plan for a larger shape; else
  // PlanConnection::ReportExecution.
  absl::StatusOr<ExecutionVerdict> Report();

  // Of the latest shape; null before it was measured. Valid until the next call.
  const stowage::Profile* profile();
  const PlanConnection& connection() const { return *connection_; }
  // Valid until the next call, as what the three below return.
  const StepCounts& steps() {
    NoteEnded();
    return steps_;
  }
  const EventCounts& events() {
    NoteEnded();
    return events_->counts();
  }
  // Of the latest step by a plan: allocated and reserved bytes beside what there was for it.
  const StepMemory& memory() {
    NoteEnded();
    return memory_;
  }
  // The latest step by a plan that ended well, instruction by instruction; empty before there was one
  // and without AgentOptions::measure_steps. Waits for the device to have done it; empty where it fails.
  const MeasuredStep& measured();
  // Shapes that had to go for others.
  int64_t forgotten_shapes() const { return table_.evicted(); }

 private:
  // What there was when a step began.
  struct StepStart {
    Bytes input;
    // The input counted in none of them.
    Bytes before;    // live
    Bytes blocks;    // of what is live
    Bytes reserved;  // beside a region
    Bytes host;
    MemoryMeter* meter = nullptr;
    const HostPool* pool = nullptr;
  };
  // What one took at most, when it had ended.
  struct StepPeaks {
    Bytes device;
    Bytes host;
  };
  struct BegunStep;
  // One that has ended, and that the device may have yet to do.
  struct UntimedStep {
    BatchSignature signature;  // of the plan
    Digest plan;
    bool shadow = false;
    StepReport report;
    Bytes reserved_peak;  // StepMemory's
  };

  absl::StatusOr<StepStart> StartOf(const Batch& batch) const;
  static StepPeaks PeaksSince(const StepStart& start);
  // Null: the step is plain, as the ranks are switched off.
  absl::StatusOr<PlannedShape*> ShapeOfStep(const Batch& batch, bool whole, PlannedShape* shape);
  // Of a step by the plan of `by`; `own`: it was made for this shape; `alone`: its memory and time are its own.
  void NoteEnd(const absl::StatusOr<StepReport>& report, const StepStart& start,
               const StepPeaks& peaks, bool retries, bool own, bool alone, PlannedShape* by);
  std::shared_ptr<BegunStep> Begin(const StepStart& start, const PlannedShape& by);
  // With steps that Forward began and that have not ended.
  void Overlap();
  static OnStepEnd TellsOf(const std::shared_ptr<BegunStep>& step);
  // Of steps that Forward began.
  void NoteEnded();
  void NoteEnd(const BegunStep& step);
  absl::StatusOr<std::vector<at::Tensor>> ShadowForward(Batch batch, PlannedShape* shape);
  void PlanForShadow(const Batch& batch, PlannedShape* shape);
  // `shape` may be null.
  void NoteShadow(const StepReport& report, bool alone, PlannedShape* shape);
  void NoteShadowTime(const StepReport& report, PlannedShape* shape);
  // Of its plan, or of plain training in shadow mode; with those before it, once the device has done them.
  void NoteLater(const StepReport& report, bool shadow, const PlannedShape& shape);
  // Of steps that the device has done; `waits`: of all.
  void NoteTimes(bool waits);
  bool Trains(const Batch& batch) const;
  // What the caller's switch is on by; empty where it is off.
  std::string OffBy() const;
  // Of ranks, as they have agreed on it.
  bool SwitchedOff();
  absl::Status CheckBatch(const Batch& batch);
  PlannedShape* FindOrAddShape(const Batch& batch);
  absl::StatusOr<Budget> BudgetOfOptions() const;
  absl::StatusOr<AdoptedPlan> PlanAnew(const Batch& batch, const Budget& budget, bool refresh);
  PlannedShape* MeetAnew(const Batch& batch);
  AdoptedPlan Install(PreparedPlan prepared, PlannedShape* shape);
  void Replan(const Batch& batch, PlannedShape* shape);
  // Nullopt where the ranks are switched off.
  absl::StatusOr<std::optional<PreparedPlan>> MakePlan(const Batch& batch, const Budget& budget,
                                                       bool refresh, PlannedShape* shape);
  absl::StatusOr<AdoptedPlan> PlanUnasked(const Batch& batch, PlannedShape* shape);
  absl::StatusOr<PreparedPlan> PlanAlone(const Batch& batch, Bytes budget, PlannedShape* shape);
  void PlanAloneForLess(const Batch& batch, PlannedShape* shape);
  void InstallAlone(PreparedPlan prepared, PlannedShape* shape);
  void InstallOrTell(absl::StatusOr<PreparedPlan> prepared, bool alone, PlannedShape* shape);
  absl::Status Refuse(absl::Status error);
  absl::Status AgreeBeforeStep(const Batch& batch, PlannedShape* shape);
  absl::Status AgreeOnReplan(const Batch& batch, PlannedShape* shape);
  absl::Status SayOfStep();
  int64_t StepsToNextLook() const;
  uint32_t Words() const;
  std::string RequestOf(const PlannedShape& shape) const;
  bool FinishesSteps() const { return agreed_ || options_.out_of_memory.finish_step; }
  absl::StatusOr<StepReport> StepBy(Batch batch, PlannedShape* by, PlannedShape* shape);
  absl::StatusOr<StepReport> FinishStep(Batch batch, const AddedGradients& added,
                                        const absl::Status& failed, const PlannedShape& by);
  bool HasCommunicated(const std::optional<StepFailure>& failure, const PlannedShape& by) const;
  absl::StatusOr<PlannedShape*> ShapeToStepBy(const Batch& batch, bool whole, PlannedShape* shape);
  absl::StatusOr<StepReport> PlannedRun(Batch batch, bool retries, bool own, PlannedShape* by);
  Bytes RoomForRegion(Bytes beside, Bytes input, const PlannedShape& by) const;
  void NoteMemory(const StepReport& report, Bytes before, const PlannedShape& by);
  absl::StatusOr<StepReport> ShadowStep(Batch batch, PlannedShape* shape);
  void NoteFailure(const absl::Status& status, Bytes before, Bytes peak, Bytes host, bool retries,
                   PlannedShape* shape);
  void NoteOutOfMemory(const absl::Status& status, const std::string& finding, bool host, Bytes got,
                       bool retries, PlannedShape* shape);
  void NoteImmovable(const absl::Status& status, PlannedShape* shape);
  void LimitHostMemory(const PendingReplan& pending, const PlannedShape* shape);
  void AskAgain(const PendingReplan& pending, const std::string& words, PlannedShape* shape);
  void NoteStep(const UntimedStep& step, PlannedShape* shape);
  void NoteDrift(PlannedShape* shape);
  bool AsksServer() const;
  void OfferProfile(PlannedShape* shape);
  absl::StatusOr<ExecutionVerdict> SendReport(const PlannedShape& shape);
  void ReportByItself(PlannedShape* shape);

  std::unique_ptr<TrainedModel> model_;
  AgentOptions options_;
  absl::Status valid_;  // the options
  std::shared_ptr<EventSink> events_;
  std::unique_ptr<PlanConnection> connection_;
  BatchPlanner planner_;
  // With options.agreement.
  std::unique_ptr<FinalAgreement> agreement_;
  std::optional<AgreedPlanner> agreed_;
  int64_t steps_since_agreement_ = 0;
  int64_t fruitless_ = 0;    // looks at wishes, one after another, that have led to no plan
  int64_t quiet_steps_ = 0;  // that ask nobody about what is in muted_
  uint32_t muted_ = 0;       // wishes that have led to no plan
  bool tells_ = false;       // a step was made that not all has been heard of
  bool said_ = false;        // how that step went
  int64_t steps_since_offer_ = 0;
  PlanTable table_;
  StepArenas arenas_;
  StepMemory memory_;
  Later<MeasuredStep> measured_;
  std::optional<BatchSignature> latest_;
  std::optional<BatchSignature> stepped_by_;  // the shape whose plan came or was stepped by last
  std::optional<Bytes> room_;                 // for shapes that Plan is not called for
  bool killed_ = false;
  bool off_agreed_ = false;       // some rank's switch is on, and all ranks know
  std::optional<Budget> wanted_;  // what Plan was called for last, switched off
  StepCounts steps_;
  std::vector<std::shared_ptr<BegunStep>> begun_;  // that nobody has noted the end of
  std::deque<UntimedStep> untimed_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGENT_H_
