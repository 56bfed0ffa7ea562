#include "client/torch/execute/planned_module.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/plan_cursor.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/execute/step_plan.h"
#include "client/torch/model/model_state.h"

namespace stowage {
namespace {

// The schedule with the loss at one place: a saving forward, then its backward.
Schedule WithLossTogether(const Schedule& schedule, int loss, int* place) {
  Schedule together;
  for (const Instruction& instruction : schedule) {
    if (instruction.stage != loss) {
      together.push_back(instruction);
    } else if (instruction.op == Op::kForwardNoSaveFreeInput) {
      together.push_back(Discard(TensorKind::kActivation, loss - 1));
    } else if (instruction.op == Op::kBackward) {
      *place = static_cast<int>(together.size());
      together.push_back(ForwardSave(loss));
      together.push_back(instruction);
    }
  }
  return together;
}

absl::Status CheckLossesComeFirst(const StepPlan& plan) {
  const GraphModel& model = *plan.model;
  std::vector<bool> trained = model.NeedGradients();
  for (size_t i = 0; i < plan.first_backward; ++i) {
    const Instruction& instruction = plan.schedule[i];
    if (IsForward(instruction.op)) trained[static_cast<size_t>(plan.NodeOf(instruction))] = false;
  }
  for (int v = 0; v < model.size(); ++v) {
    const bool may_start = plan.callers_loss() ? model.has_output(v) : model.has_unread(v);
    if (!may_start || !trained[static_cast<size_t>(v)]) continue;
    return absl::UnimplementedError(
        absl::StrCat("instruction ", plan.first_backward, " (",
                     ToString(plan.schedule[plan.first_backward]), ") comes before the forward of ",
                     model.Describe(v), ", which could be where the caller's backward begins"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<PlannedModule>> PlannedModule::Create(
    const ChainModel* model, Chain chain, const Schedule& schedule, ExecutionDevice* device,
    std::optional<BatchShape> batch) {
  int place = 0;
  Schedule together = WithLossTogether(schedule, chain.length() + 1, &place);
  auto executor = Executor::OfChain(model, std::move(chain), std::move(together), place, device,
                                    std::move(batch));
  if (!executor.ok()) return executor.status();
  return std::unique_ptr<PlannedModule>(new PlannedModule(*std::move(executor)));
}

absl::StatusOr<std::unique_ptr<PlannedModule>> PlannedModule::Create(const GraphModel* model,
                                                                     Graph graph, Schedule schedule,
                                                                     ExecutionDevice* device) {
  auto executor = Executor::Create(model, std::move(graph), std::move(schedule), device);
  if (!executor.ok()) return executor.status();
  const absl::Status status = CheckLossesComeFirst(*(*executor)->plan_);
  if (!status.ok()) return status;
  return std::unique_ptr<PlannedModule>(new PlannedModule(*std::move(executor)));
}

PlannedModule::~PlannedModule() { EmptyQueuesAfterFailure(); }

// The caller's backward, unlike those that we run, leaves in autograd's queues what was ready when it threw.
void PlannedModule::EmptyQueuesAfterFailure() const {
  const StepPlan& plan = *executor_->plan_;
  if (plan.open_backwards.Take()) EmptyQueues(plan.device->device());
}

std::vector<at::Tensor> PlannedModule::ForwardWithoutPlan(std::vector<at::Tensor> inputs,
                                                          const Tensors& targets) const {
  EmptyQueuesAfterFailure();
  const StepPlan& plan = *executor_->plan_;
  return plan.chain ? PlainOutputs(*plan.model, std::move(inputs), targets)
                    : PlainLosses(*plan.model, std::move(inputs), targets);
}

bool PlannedModule::Trains(const std::vector<at::Tensor>& inputs) const {
  return at::GradMode::is_enabled() &&
         (AnyTrains(inputs) || AnyTrains(executor_->plan_->model->parameters()));
}

absl::Status PlannedModule::CheckInputs(const std::vector<at::Tensor>& inputs) const {
  const StepPlan& plan = *executor_->plan_;
  absl::Status fits = executor_->CheckInputs(inputs);
  if (!fits.ok()) return fits;
  // A profile knows whether the input of a chain asks for a gradient.
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    if (!plan.chain) {
      return absl::UnimplementedError("an input of a planned graph asks for a gradient");
    }
    if (i > 0 || plan.chain->gradient(0) > Bytes(0)) continue;
    return absl::InvalidArgumentError(
        "the input asks for a gradient, that of the profile asked for none");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<at::Tensor>> PlannedModule::ForwardByPlan(
    std::vector<at::Tensor> inputs, const Tensors& targets, const Listener* listener,
    std::exception_ptr* thrown) const {
  const std::shared_ptr<const StepPlan>& plan = executor_->plan_;
  EmptyQueuesAfterFailure();
  absl::Status status = CheckInputs(inputs);
  if (!status.ok()) return status;
  Bytes bytes;
  for (const at::Tensor& input : inputs) bytes += Bytes(static_cast<int64_t>(input.nbytes()));
  // Where each node has a graph of its own, gradients are added up by hand; instructions are measured against them.
  const bool needs_gradients =
      !plan->in_engine_order || (listener != nullptr && listener->measures);
  if (needs_gradients) plan->model->EnsureGradients();
  StateGuard before(plan->model->buffers(), plan->device->device());
  PlanCursor::Inputs given;
  for (const at::Tensor& input : inputs) {
    given.edges.push_back(input.requires_grad() ? torch::autograd::impl::gradient_edge(input)
                                                : torch::autograd::Edge());
  }
  given.sources = executor_->SourcesOf(std::move(inputs), targets, /*lent=*/false);
  given.keeps = plan->chain != nullptr;
  const auto cursor =
      std::make_shared<PlanCursor>(plan, std::move(given), targets, executor_->gradient_ready_);
  if (listener != nullptr) cursor->Measure(bytes, listener->measures);
  status = cursor->Forward();
  if (!status.ok()) {
    *thrown = cursor->thrown();
    return status;
  }
  if (listener != nullptr) cursor->TellOf(listener->ended);
  before.Dismiss();
  return plan->callers_loss() ? cursor->TakeOutputs() : cursor->TakeLosses();
}

std::vector<at::Tensor> PlannedModule::ForwardAll(std::vector<at::Tensor> inputs,
                                                  const Tensors& targets) {
  const StepPlan& plan = *executor_->plan_;
  std::exception_ptr thrown;
  absl::StatusOr<std::vector<at::Tensor>> outputs =
      Trains(inputs) ? ForwardByPlan(std::move(inputs), targets, nullptr, &thrown)
                     : ForwardWithoutPlan(std::move(inputs), targets);
  if (!outputs.ok()) ThrowStatus(outputs.status(), thrown);
  if (!plan.callers_loss()) return {SumOf(*std::move(outputs))};
  return *std::move(outputs);
}

at::Tensor PlannedModule::forward(std::vector<at::Tensor> inputs, const Tensors& targets) {
  const size_t made = std::max<size_t>(executor_->plan_->model->outputs().size(), 1);
  if (made > 1) {
    ThrowStatus(absl::InvalidArgumentError(
        absl::StrCat("the model has ", made, " outputs, which only ForwardAll returns")));
  }
  return ForwardAll(std::move(inputs), targets).front();
}

absl::StatusOr<std::vector<at::Tensor>> PlannedModule::BeginStep(std::vector<at::Tensor> inputs,
                                                                 const Tensors& targets,
                                                                 bool measures, OnStepEnd ended) {
  try {
    if (!Trains(inputs)) {
      return absl::InvalidArgumentError("nothing is to be trained: there is no step to begin");
    }
    const Listener listener{measures, std::move(ended)};
    std::exception_ptr thrown;
    absl::StatusOr<std::vector<at::Tensor>> outputs =
        ForwardByPlan(std::move(inputs), targets, &listener, &thrown);
    if (!outputs.ok() || executor_->plan_->callers_loss()) return outputs;
    return std::vector<at::Tensor>{SumOf(*std::move(outputs))};
  } catch (...) {
    return CurrentExceptionToStatus("forward of a training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
