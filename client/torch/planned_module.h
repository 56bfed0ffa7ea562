// A chain under autograd: training loops stay as they are, and the memory of their steps is planned.
//
//   auto planned = stowage::PlannedModule::Create(&model, chain, schedule).value();
//   at::Tensor loss = criterion(planned->forward(input), target);
//   loss.backward();
//
// The loss is the caller's. A schedule also runs that of the profile, stage L+1, so its place is
// taken: forward() carries out what comes before the saving forward of stage L+1, then the caller's
// loss runs forward and backward, and what it gives to the output starts the rest. Where a schedule
// has that forward and the backward of L+1 apart, or runs L+1 more than once, they are moved to stand
// together before the backward; prediction() is of what is carried out.
#ifndef STOWAGE_CLIENT_TORCH_PLANNED_MODULE_H_
#define STOWAGE_CLIENT_TORCH_PLANNED_MODULE_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/torch/batch_shape.h"
#include "client/torch/chain_executor.h"
#include "client/torch/chain_model.h"
#include "client/torch/execution_device.h"
#include "client/torch/parameter_gradients.h"
#include "solvers/model/chain.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Unlike the rest of this room it throws, as modules do, in forward() and out of backward():
// c10::OutOfMemoryError where memory ran out, c10::Error with a message that names instruction and
// stage for anything else. What fails leaves nothing held, and random state and buffers as they were
// before it; after a backward that failed zero the gradients.
//
// Not thread-safe. Model and device must outlive the module and every graph that hangs on what it
// returned.
class PlannedModule {
 public:
  // As ChainExecutor::Create. What of the loss the schedule moves to the host is not moved.
  static absl::StatusOr<std::unique_ptr<PlannedModule>> Create(
      const ChainModel* model, Chain chain, const Schedule& schedule,
      ExecutionDevice* device = nullptr, std::optional<BatchShape> batch = std::nullopt);

  // The output of stage L. Random state and buffers change as in plain training. Each call holds what
  // its backward needs, until that has run or the graph on the output is gone; so there may be several
  // before the first backward. The output is the caller's: what he keeps of it after the loss is memory
  // that the plan does not have. So is an input that he keeps, where the plan has it on the host: it
  // moves a copy then, which forward(std::move(input)) spares.
  //
  // A backward adds to the gradients of the parameters (one that has none gets a zeroed one in the
  // forward) what plain training adds, under the autocast of the forward, and gives one to the input,
  // if it asks. The profile must know that: measure it with an input that requires a gradient. A second
  // backward without retain_graph is an error; with it, all runs again from the input on, which is one
  // where a stage must not run twice. So is a parameter or the input written over between forward and
  // backward, and a gradient of gradients.
  //
  // Under NoGradGuard, or where nothing is to be trained, the stages run as they are, without a plan.
  at::Tensor forward(at::Tensor input);

  // From the next forward on, during its backward; see ParameterGradients.
  void TellReadyGradients(OnGradientReady ready);

  // What the evaluator says, were the caller's loss that of the profile.
  const Simulation& prediction() const { return executor_->prediction(); }

 private:
  PlannedModule(const ChainModel* model, std::shared_ptr<ChainExecutor> executor, size_t loss)
      : model_(model), executor_(std::move(executor)), loss_(loss) {}

  const ChainModel* model_;
  std::shared_ptr<ChainExecutor> executor_;
  size_t loss_;  // the instruction at which the loss begins
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PLANNED_MODULE_H_
