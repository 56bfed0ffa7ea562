#include "client/torch/planned_graph.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/model_state.h"
#include "client/torch/plain_step.h"
#include "client/torch/planned_backward.h"
#include "client/torch/torch_status.h"

namespace stowage {
namespace {

at::Tensor SumOf(std::vector<at::Tensor> losses) {
  at::Tensor sum;
  for (at::Tensor& loss : losses) sum = sum.defined() ? sum + loss : std::move(loss);
  if (sum.defined()) return sum;
  ThrowStatus(absl::InvalidArgumentError("no node that nobody reads makes a scalar"));
}

}  // namespace

// One forward and its backward, by a plan whose backwards autograd's engine would run in another order.
class PlannedGraphRun : public PlannedRest {
 public:
  PlannedGraphRun(std::shared_ptr<GraphExecutor> executor, std::vector<at::Tensor> inputs,
                  const at::Tensor& target)
      : executor_(std::move(executor)),
        parameters_("parameter", executor_->model_->parameters()),
        inputs_("input", inputs),
        state_(executor_->Begin(std::move(inputs), target, /*lent=*/false)) {}

  // The loss.
  at::Tensor Forward(size_t first_backward) {
    StateGuard before(executor_->model_->buffers());
    RunUpTo(first_backward);
    before.Dismiss();
    const GraphModel& model = *executor_->model_;
    std::optional<at::TensorOptions> sum;
    for (int v = 0; v < model.size(); ++v) {
      const at::Tensor& value = state_.tensors.Value(v);
      if (!model.is_output(v) || !value.defined() || value.numel() != 1) continue;
      const at::ScalarType type = value.scalar_type();
      sum = value.options().dtype(
          sum ? at::promote_types(c10::typeMetaToScalarType(sum->dtype()), type) : type);
    }
    if (sum) return at::full({}, state_.report.loss, *sum);
    ThrowStatus(absl::InvalidArgumentError("no node that nobody reads makes a scalar"));
  }

  at::Tensor Backward(at::Tensor gradient) override {
    if (done_) {
      ThrowStatus(absl::UnimplementedError(
          "Trying to backward through a planned graph a second time, which it cannot do"));
    }
    done_ = true;
    parameters_.CheckUnchanged();
    inputs_.CheckUnchanged();
    state_.seed = std::move(gradient);
    RunUpTo(executor_->schedule_.size());
    return {};
  }

 private:
  void RunUpTo(size_t end) {
    const absl::Status status = executor_->RunUpTo(end, &state_);
    if (!status.ok()) ThrowStatus(status);
  }

  std::shared_ptr<GraphExecutor> executor_;
  TensorVersions parameters_;
  TensorVersions inputs_;
  GraphExecutor::StepState state_;
  bool done_ = false;
};

absl::StatusOr<std::unique_ptr<PlannedGraph>> PlannedGraph::Create(const GraphModel* model,
                                                                   Graph graph, Schedule schedule,
                                                                   ExecutionDevice* device) {
  auto executor = GraphExecutor::Create(model, std::move(graph), std::move(schedule), device);
  if (!executor.ok()) return executor.status();
  const Schedule& carried_out = (*executor)->schedule_;
  const size_t first_backward = static_cast<size_t>(
      std::find_if(carried_out.begin(), carried_out.end(),
                   [](const Instruction& instruction) { return instruction.op == Op::kBackward; }) -
      carried_out.begin());
  std::vector<bool> trained = model->NeedGradients();
  for (size_t i = 0; i < first_backward; ++i) {
    if (IsForward(carried_out[i].op))
      trained[static_cast<size_t>(carried_out[i].stage) - 1] = false;
  }
  for (int v = 0; v < model->size(); ++v) {
    if (!model->is_output(v) || !trained[static_cast<size_t>(v)]) continue;
    return absl::UnimplementedError(
        absl::StrCat("instruction ", first_backward, " (", ToString(carried_out[first_backward]),
                     ") comes before the forward of ", model->Describe(v),
                     ", which could be a loss of the caller's backward"));
  }
  return std::unique_ptr<PlannedGraph>(
      new PlannedGraph(model, *std::move(executor), first_backward));
}

at::Tensor PlannedGraph::forward(std::vector<at::Tensor> inputs, const at::Tensor& target) {
  if (!at::GradMode::is_enabled() || !AnyTrains(model_->parameters())) {
    return SumOf(PlainLosses(*model_, std::move(inputs), target));
  }
  const absl::Status fits = executor_->CheckInputs(inputs);
  if (!fits.ok()) ThrowStatus(fits);
  for (const at::Tensor& input : inputs) {
    if (!input.requires_grad()) continue;
    ThrowStatus(absl::UnimplementedError("an input of a planned graph asks for a gradient"));
  }
  model_->EnsureGradients();
  if (executor_->in_engine_order_) {
    StateGuard before(model_->buffers());
    const auto cursor = std::make_shared<GraphCursor>(
        executor_->plan_, executor_->SourcesOf(std::move(inputs), target, /*lent=*/false), target,
        executor_->gradient_ready_);
    const absl::Status status = cursor->Forward();
    if (!status.ok()) ThrowStatus(status);
    before.Dismiss();
    return SumOf(cursor->TakeLosses());
  }
  auto run = std::make_unique<PlannedGraphRun>(executor_, std::move(inputs), target);
  at::Tensor loss = run->Forward(first_backward_);
  SetBackward(loss, torch::autograd::Edge(), std::move(run));
  return loss;
}

}  // namespace stowage
