// One forward of a PlannedModule and its backward: a step of an executor that stops at the loss.
#ifndef STOWAGE_CLIENT_TORCH_PLANNED_RUN_H_
#define STOWAGE_CLIENT_TORCH_PLANNED_RUN_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>

#include "client/torch/chain_executor.h"
#include "client/torch/planned_backward.h"

namespace stowage {

// Functions throw: see PlannedModule. Not thread-safe.
class PlannedRun : public PlannedRest {
 public:
  // `loss` is the instruction at which the loss runs forward; the next one is its backward.
  PlannedRun(std::shared_ptr<ChainExecutor> executor, size_t loss, at::Tensor input);
  ~PlannedRun() override;

  // The output of stage L, without a graph.
  at::Tensor Forward();
  // The second time, all runs again.
  at::Tensor Backward(at::Tensor gradient) override;

 private:
  void RunUpTo(size_t end);
  void StartAgain();

  std::shared_ptr<ChainExecutor> executor_;
  size_t loss_;
  TensorVersions parameters_;
  TensorVersions inputs_;
  bool gives_input_gradient_;
  at::Tensor input_;
  ChainExecutor::StepState state_;
  bool done_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PLANNED_RUN_H_
