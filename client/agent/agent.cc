#include "client/agent/agent.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/agent/device_link.h"
#include "client/agent/plan_token.h"
#include "client/rpc/connect.h"
#include "client/rpc/job_name.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

// What cannot be completed is refused by CheckAgentOptions.
// The memory that the device says is free, and what of the model is there already.
void CompleteLimit(const ModelTensors& model, AgentOptions* options) {
  if (!options->device_limit) return;
  absl::StatusOr<DeviceLimit> limit = LimitOfDevice(model, *options->device_limit, options->device);
  if (limit.ok()) options->device_limit = *limit;
}

AgentOptions Completed(AgentOptions options, const TrainedModel& model) {
  if (model.lists_all()) CompleteLimit(model.tensors(), &options);
  if (!HasLink(options.device)) options.plan.recompute_only = true;
  if (options.profile.device == nullptr) options.profile.device = options.device;
  if (options.job.empty()) options.job = JobName();
  return options;
}

std::unique_ptr<PlanConnection> ConnectTo(const AgentOptions& options,
                                          std::shared_ptr<EventSink> events) {
  const auto said = [events = std::move(events)](const std::string& words) {
    events->Emit(FellBackEvent{words});
  };
  return Connect(options.server, said, options.retry);
}

constexpr char kSwitchedOff[] = "switched off: training is plain";

AdoptedPlan NotPlanned(const std::string& why) {
  AdoptedPlan none;
  none.plan.status = PlanStatus::kNotFound;
  none.plan.explanation = why;
  return none;
}

// What a profile's bytes depend on beside the model.
std::string Environment(const Device& device) {
  return absl::StrCat(device.model, ", ", device.framework, ", ", device.math_settings);
}

// What a problem knows of a batch's inputs: a chain of the first alone.
Bytes KnownInputBytes(const Problem& problem, const Batch& batch) {
  if (!std::holds_alternative<Chain>(problem)) return InputBytes(batch);
  return batch.inputs.empty() ? Bytes(0) : InputBytes({{batch.inputs.front()}, {}});
}

Bytes SourceBytes(const Problem& problem) {
  if (const Chain* chain = std::get_if<Chain>(&problem)) return chain->activation(0);
  const Graph& graph = std::get<Graph>(problem);
  Bytes bytes;
  for (int v = 0; v < graph.size(); ++v) {
    if (graph.vertex(v).inputs.empty()) bytes += graph.vertex(v).output;
  }
  return bytes;
}

Batch BatchOf(const at::Tensor& input, const Tensors& target) { return {{input}, target}; }

}  // namespace

Agent::Agent(const ChainModel* model, AgentOptions options)
    : Agent(MakeTrainedModel(model), nullptr, std::move(options)) {}

Agent::Agent(const GraphModel* model, AgentOptions options)
    : Agent(MakeTrainedModel(model), nullptr, std::move(options)) {}

Agent::Agent(const ChainModel* model, std::unique_ptr<PlanConnection> connection,
             AgentOptions options)
    : Agent(MakeTrainedModel(model), std::move(connection), std::move(options)) {}

Agent::Agent(std::unique_ptr<TrainedModel> model, std::unique_ptr<PlanConnection> connection,
             AgentOptions options)
    : model_(std::move(model)),
      options_(Completed(std::move(options), *model_)),
      valid_(CheckAgentOptions(options_)),
      events_(std::make_shared<EventSink>(options_.on_event)),
      connection_(connection != nullptr ? std::move(connection) : ConnectTo(options_, events_)),
      planner_(model_.get(), connection_.get(), &options_, events_.get()),
      table_(std::max<int64_t>(options_.max_shapes, 1),
             std::max<int64_t>(
                 {options_.drift.window, options_.report_after, options_.shadow_every, 1})),
      arenas_(options_, events_.get()) {
  if (options_.agreement != nullptr) {
    agreement_ = std::make_unique<FinalAgreement>(options_.agreement.get());
    agreed_.emplace(&planner_, agreement_.get(), &options_);
  }
}

std::string Agent::OffBy() const {
  if (options_.off && options_.off()) return "options.off";
  if (options_.off_variable.empty()) return "";
  const char* value = std::getenv(options_.off_variable.c_str());
  if (value == nullptr || *value == '\0' || std::string(value) == "0") return "";
  return absl::StrCat(options_.off_variable, "=", value);
}

bool Agent::SwitchedOff() {
  std::string by = OffBy();
  if (agreed_ && !off_agreed_) by.clear();
  if (agreed_ && off_agreed_ && by.empty()) by = "another rank";
  if (killed_ == by.empty()) {
    killed_ = !killed_;
    arenas_.Release();
    events_->Emit(KilledEvent{killed_, by});
  }
  return killed_;
}

PlannedShape* Agent::FindOrAddShape(const Batch& batch) {
  BatchSignature signature = BatchSignature::Of(batch, model_->tensors());
  PlannedShape* shape = table_.FindOrAdd(signature);
  latest_ = std::move(signature);
  return shape;
}

// To be planned from the start: what was there holds no more, whatever comes.
PlannedShape* Agent::MeetAnew(const Batch& batch) {
  PlannedShape* shape = FindOrAddShape(batch);
  shape->step.reset();
  shape->adopted.reset();
  shape->pending.reset();
  return shape;
}

absl::Status Agent::CheckBatch(const Batch& batch) {
  if (model_->lists_all()) return valid_;
  absl::Status found = model_->FindUnlisted(batch);
  if (!found.ok()) return found;
  CompleteLimit(model_->tensors(), &options_);
  valid_ = CheckAgentOptions(options_);
  return valid_;
}

absl::Status Agent::Profile(const Batch& batch) {
  const absl::Status fits = CheckBatch(batch);
  if (!fits.ok() || SwitchedOff()) return fits;
  arenas_.Release();
  return planner_.Profile(batch, FindOrAddShape(batch));
}

absl::Status Agent::UseProfile(const Batch& batch, stowage::Profile profile) {
  absl::Status listed = CheckBatch(batch);
  if (!listed.ok()) return listed;
  const Device here = model_->DeviceOf(options_.device);
  if (Environment(profile.device) != Environment(here)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the profile is of ", Environment(profile.device), ", this is ", Environment(here)));
  }
  const Bytes known = KnownInputBytes(profile.problem, batch);
  if (SourceBytes(profile.problem) != known) {
    return FieldError("profile.input", SourceBytes(profile.problem).value(),
                      absl::StrCat("must be the ", known.value(), " bytes of the batch's inputs"));
  }
  // Whether it is of this model, an executor knows.
  const Schedule plain = Instance(profile).store_all_schedule();
  const absl::Status fits =
      model_->Prepare(profile.problem, plain, batch, options_.device).status();
  if (!fits.ok()) return fits;
  WriteLink(options_.device, planner_.host_memory(), &profile.device);
  FindOrAddShape(batch)->profile = std::move(profile);
  return absl::OkStatus();
}

// What ends a call of all ranks before it has begun.
absl::Status Agent::Refuse(absl::Status error) { return agreed_ ? agreed_->Refuse(error) : error; }

AdoptedPlan Agent::Install(PreparedPlan prepared, PlannedShape* shape) {
  shape->adopted = std::move(prepared.adopted);
  shape->step = std::move(prepared.step);
  shape->watch.Clear();
  shape->reported = false;
  shape->alone = false;
  shape->pending.reset();
  stepped_by_ = shape->signature;
  const AdoptedPlan& adopted = *shape->adopted;
  if (shape->step != nullptr && !options_.shadow) {
    events_->Emit(
        AdoptedEvent{shape->signature.text(), adopted.key, adopted.digest, adopted.plan.revision,
                     adopted.plan.budget, adopted.plan.prediction.makespan,
                     adopted.plan.prediction.peak, adopted.plan.prediction.recomputed_forwards,
                     adopted.plan.prediction.offloaded, adopted.plan.prediction.prefetched});
  }
  return adopted;
}

absl::StatusOr<std::optional<PreparedPlan>> Agent::MakePlan(const Batch& batch,
                                                            const Budget& budget, bool refresh,
                                                            PlannedShape* shape) {
  arenas_.Release();
  if (agreed_) {
    const bool off = !OffBy().empty();
    absl::StatusOr<std::optional<PreparedPlan>> prepared =
        refresh ? agreed_->Refresh(batch, budget, off, shape)
                : agreed_->Plan(batch, budget, off, shape);
    if (prepared.ok()) off_agreed_ = !prepared->has_value();
    return prepared;
  }
  absl::StatusOr<PreparedPlan> prepared =
      refresh ? planner_.Refresh(batch, budget, shape) : planner_.Plan(batch, budget, shape);
  if (!prepared.ok()) return prepared.status();
  return std::optional<PreparedPlan>(*std::move(prepared));
}

absl::StatusOr<AdoptedPlan> Agent::PlanAnew(const Batch& batch, const Budget& budget,
                                            bool refresh) {
  const absl::Status listed = CheckBatch(batch);
  if (!listed.ok()) return Refuse(listed);
  NoteEnded();
  wanted_.reset();
  if (!agreed_ && SwitchedOff()) {
    wanted_ = budget;
    return NotPlanned(kSwitchedOff);
  }
  PlannedShape* shape = MeetAnew(batch);
  arenas_.TryAgain();
  absl::StatusOr<std::optional<PreparedPlan>> prepared = MakePlan(batch, budget, refresh, shape);
  if (!prepared.ok()) return prepared.status();
  if (!prepared->has_value()) {
    wanted_ = budget;
    SwitchedOff();  // tells it
    return NotPlanned(kSwitchedOff);
  }
  AdoptedPlan adopted = Install(**std::move(prepared), shape);
  room_ = adopted.plan.budget;
  return adopted;
}

absl::StatusOr<AdoptedPlan> Agent::Plan(const Batch& batch, const Budget& budget) {
  return PlanAnew(batch, budget, /*refresh=*/false);
}

absl::StatusOr<AdoptedPlan> Agent::Refresh(const Batch& batch, const Budget& budget) {
  return PlanAnew(batch, budget, /*refresh=*/true);
}

absl::StatusOr<AdoptedPlan> Agent::Plan(const Batch& batch) {
  const absl::Status listed = CheckBatch(batch);
  if (!listed.ok()) return Refuse(listed);
  const absl::StatusOr<Budget> budget = BudgetOfOptions();
  if (!budget.ok()) return Refuse(budget.status());
  return Plan(batch, *budget);
}

absl::StatusOr<Budget> Agent::BudgetOfOptions() const {
  if (options_.budget) return *options_.budget;
  if (!options_.device_limit) {
    return absl::FailedPreconditionError(
        "no plan has been adopted: call Plan first, or set options.budget or options.device_limit");
  }
  absl::StatusOr<DeviceBudget> shared = BudgetOfDevice(model_->tensors(), *options_.device_limit);
  if (!shared.ok()) return shared.status();
  events_->Emit(BudgetSharedEvent{*shared});
  return Budget(shared->activations);
}

absl::StatusOr<AdoptedPlan> Agent::Resume(const std::string& text, const Batch& batch) {
  if (!valid_.ok()) return Refuse(valid_);
  const absl::StatusOr<PlanToken> token = ParsePlanToken(text);
  if (!token.ok()) return Refuse(token.status());
  planner_.LimitHostMemory(token->host_memory);
  absl::StatusOr<AdoptedPlan> adopted = Plan(batch, token->budget);
  if (!adopted.ok() || killed_) return adopted;
  // That of ranks is of what they have agreed on.
  const absl::StatusOr<PlanKey> key =
      agreed_ ? adopted->key : planner_.KeyOf(batch, FindOrAddShape(batch));
  ResumedEvent event{latest_->text(), adopted->digest == token->plan, ToString(*token)};
  if (key.ok() && *key != token->key) {
    event.words =
        absl::StrCat("network, batch, environment or tenant is not that of ", event.words);
  } else if (!event.same_plan) {
    event.words = absl::StrCat("not the schedule of ", event.words);
  }
  events_->Emit(event);
  return adopted;
}

std::string Agent::Token() {
  const PlannedShape* shape = stepped_by_ ? table_.Find(*stepped_by_) : nullptr;
  if (shape == nullptr || shape->step == nullptr) return "";
  const AdoptedPlan& adopted = *shape->adopted;
  return ToString(
      PlanToken{adopted.key, adopted.digest, adopted.plan.budget, planner_.host_memory()});
}

const stowage::Profile* Agent::profile() {
  const PlannedShape* shape = latest_ ? table_.Find(*latest_) : nullptr;
  return shape != nullptr && shape->profile ? &*shape->profile : nullptr;
}

absl::Status Agent::Profile(const at::Tensor& input, const Tensors& target) {
  return Profile(BatchOf(input, target));
}

absl::StatusOr<AdoptedPlan> Agent::Plan(const at::Tensor& input, const Tensors& target,
                                        const Budget& budget) {
  return Plan(BatchOf(input, target), budget);
}

absl::StatusOr<AdoptedPlan> Agent::Refresh(const at::Tensor& input, const Tensors& target,
                                           const Budget& budget) {
  return Refresh(BatchOf(input, target), budget);
}

absl::StatusOr<StepReport> Agent::Step(const at::Tensor& input, const Tensors& target) {
  return Step(BatchOf(input, target));
}

}  // namespace stowage
