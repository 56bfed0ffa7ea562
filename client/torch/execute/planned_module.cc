#include "client/torch/execute/planned_module.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/variable.h>

#include <cstddef>
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

at::Tensor SumOf(std::vector<at::Tensor> losses) {
  at::Tensor sum;
  for (at::Tensor& loss : losses) sum = sum.defined() ? sum + loss : std::move(loss);
  if (sum.defined()) return sum;
  ThrowStatus(absl::InvalidArgumentError("no node that nobody reads makes a scalar"));
}

absl::Status CheckLossesComeFirst(const StepPlan& plan) {
  const GraphModel& model = *plan.model;
  std::vector<bool> trained = model.NeedGradients();
  for (size_t i = 0; i < plan.first_backward; ++i) {
    const Instruction& instruction = plan.schedule[i];
    if (IsForward(instruction.op)) trained[static_cast<size_t>(plan.NodeOf(instruction))] = false;
  }
  for (int v = 0; v < model.size(); ++v) {
    if (!model.is_output(v) || !trained[static_cast<size_t>(v)]) continue;
    return absl::UnimplementedError(
        absl::StrCat("instruction ", plan.first_backward, " (",
                     ToString(plan.schedule[plan.first_backward]), ") comes before the forward of ",
                     model.Describe(v), ", which could be a loss of the caller's backward"));
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

at::Tensor PlannedModule::ForwardWithoutPlan(std::vector<at::Tensor> inputs,
                                             const at::Tensor& target) const {
  const StepPlan& plan = *executor_->plan_;
  if (plan.output < 0) return SumOf(PlainLosses(*plan.model, std::move(inputs), target));
  return PlainOutput(*plan.model, std::move(inputs));
}

// A profile knows whether the input of a chain asks for a gradient.
void PlannedModule::CheckAsking(const std::vector<at::Tensor>& inputs) const {
  const StepPlan& plan = *executor_->plan_;
  for (const at::Tensor& input : inputs) {
    if (!input.requires_grad()) continue;
    if (!plan.chain) {
      ThrowStatus(absl::UnimplementedError("an input of a planned graph asks for a gradient"));
    }
    if (plan.chain->gradient(0) > Bytes(0)) continue;
    ThrowStatus(absl::InvalidArgumentError(
        "the input asks for a gradient, that of the profile asked for none"));
  }
}

at::Tensor PlannedModule::forward(std::vector<at::Tensor> inputs, const at::Tensor& target) {
  const std::shared_ptr<const StepPlan>& plan = executor_->plan_;
  EmptyQueuesAfterFailure();
  const bool trains = AnyTrains(inputs) || AnyTrains(plan->model->parameters());
  if (!at::GradMode::is_enabled() || !trains) return ForwardWithoutPlan(std::move(inputs), target);
  const absl::Status fits = executor_->CheckInputs(inputs);
  if (!fits.ok()) ThrowStatus(fits);
  CheckAsking(inputs);
  plan->model->EnsureGradients();
  StateGuard before(plan->model->buffers(), plan->device->device());
  PlanCursor::Inputs given;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) given.edges = {torch::autograd::impl::gradient_edge(input)};
  }
  given.sources = executor_->SourcesOf(std::move(inputs), target, /*lent=*/false);
  given.repeats = plan->chain != nullptr;
  const auto cursor =
      std::make_shared<PlanCursor>(plan, std::move(given), target, executor_->gradient_ready_);
  const absl::Status status = cursor->Forward();
  if (!status.ok()) ThrowStatus(status);
  before.Dismiss();
  return plan->output < 0 ? SumOf(cursor->TakeLosses()) : cursor->TakeOutput();
}

}  // namespace stowage
