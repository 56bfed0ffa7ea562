// A training step as everyone writes it: one graph over the whole model, one backward. The
// reference that schedules are measured against.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_PLAIN_STEP_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_PLAIN_STEP_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"

namespace stowage {

// Adds to the parameters' gradients. Where autocast is in force the forward runs under it, as a region of
// its own, and the backward without. Counts every stage as one saving forward and one backward.
// Errors and what they leave: as Executor::Step. Waits for nothing (StepReport). Not thread-safe.
absl::StatusOr<StepReport> PlainStep(const ChainModel& model, const Tensors& inputs,
                                     const Tensors& targets, const StepMeters& meters = {});

// The same of a model of any shape: the loss is the sum of the scalars that nobody reads, or of all that outputs have,
// and tensors go after their last reader.
absl::StatusOr<StepReport> PlainGraphStep(const GraphModel& model, std::vector<at::Tensor> inputs,
                                          const Tensors& targets, const StepMeters& meters = {});

// The forwards alone, which throw what LibTorch and the model throw: what the last stage makes, all of it or, of one tensor,
// the first; what a backward begins at (GraphModel::StartsBackward); the same where no gradient flows to the inputs.
Tensors PlainForwardAll(const ChainModel& model, Tensors inputs);
at::Tensor PlainForward(const ChainModel& model, at::Tensor input);
std::vector<at::Tensor> PlainOutputs(const GraphModel& model, std::vector<at::Tensor> inputs,
                                     const Tensors& targets);
std::vector<at::Tensor> PlainLosses(const GraphModel& model, std::vector<at::Tensor> inputs,
                                    const Tensors& targets);
// The loss of a model that has several, or c10::Error where it has none.
at::Tensor SumOf(std::vector<at::Tensor> losses);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_PLAIN_STEP_H_
