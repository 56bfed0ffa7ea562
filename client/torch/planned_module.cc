#include "client/torch/planned_module.h"

#include <c10/core/GradMode.h>

#include <utility>

#include "client/torch/plain_step.h"
#include "client/torch/planned_backward.h"
#include "client/torch/planned_run.h"
#include "client/torch/torch_status.h"

namespace stowage {
namespace {

// The schedule with the loss at one place: a saving forward, then its backward.
Schedule WithLossTogether(const Schedule& schedule, int loss, size_t* place) {
  Schedule together;
  for (const Instruction& instruction : schedule) {
    if (instruction.stage != loss) {
      together.push_back(instruction);
    } else if (instruction.op == Op::kForwardNoSaveFreeInput) {
      together.push_back(Discard(TensorKind::kActivation, loss - 1));
    } else if (instruction.op == Op::kBackward) {
      *place = together.size();
      together.push_back(ForwardSave(loss));
      together.push_back(instruction);
    }
  }
  return together;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PlannedModule>> PlannedModule::Create(
    const ChainModel* model, Chain chain, const Schedule& schedule, ExecutionDevice* device,
    std::optional<BatchShape> batch) {
  size_t place = 0;
  Schedule together = WithLossTogether(schedule, chain.length() + 1, &place);
  auto executor =
      ChainExecutor::Create(model, std::move(chain), std::move(together), device, std::move(batch));
  if (!executor.ok()) return executor.status();
  return std::unique_ptr<PlannedModule>(new PlannedModule(model, *std::move(executor), place));
}

void PlannedModule::TellReadyGradients(OnGradientReady ready) {
  executor_->TellReadyGradients(std::move(ready));
}

at::Tensor PlannedModule::forward(at::Tensor input) {
  const bool trains =
      at::GradMode::is_enabled() && (input.requires_grad() || AnyTrains(model_->parameters()));
  if (!trains) return PlainForward(*model_, input);
  const absl::Status fits = executor_->CheckInput(input);
  if (!fits.ok()) ThrowStatus(fits);
  if (input.requires_grad() && executor_->chain_.gradient(0) == Bytes(0)) {
    ThrowStatus(absl::InvalidArgumentError(
        "the input asks for a gradient, that of the profile asked for none"));
  }
  model_->EnsureGradients();
  torch::autograd::Edge next = EdgeTo(input);
  auto run = std::make_unique<PlannedRun>(executor_, loss_, std::move(input));
  at::Tensor output = run->Forward();
  SetBackward(output, std::move(next), std::move(run));
  return output;
}

}  // namespace stowage
