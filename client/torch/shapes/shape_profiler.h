// The structure of a model's profile without running the model: from the shapes of its tensors.
//
// The profiling pass itself runs, on tensors without data (ShapeScope): what autograd saves, which
// inputs a backward reads again, what lives in the memory of what, which parts draw random numbers or
// update buffers, all that is found as it is found in a step. A profile from shapes so has the key of
// the measured one. Its times are 0, its overheads those of the operations' own tensors: workspaces
// inside of operations, which no shape tells, come on top. So it is good for asking by key and for
// validating against the peak that whoever measured has predicted, not for making plans or for shares of what
// plain training holds.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_PROFILER_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_PROFILER_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "solvers/model/problem.h"

namespace stowage {

// CostSource::kBytesOnly. Takes milliseconds and next to no memory, whatever the batch. Parameters,
// gradients, buffers and random state are afterwards what they were before, also after an error.
// `meters` are of real memory, and the device of the tensors: null for those of the CPU.
//
// FAILED_PRECONDITION where the shapes do not tell, or for any error of ProfileChain: whoever gets it
// measures instead, and learns there what is wrong. The message names stage and operation. Not
// thread-safe: nothing else may allocate tensors meanwhile.
absl::StatusOr<Profile> ChainFromShapes(const ChainModel& model, const Tensors& inputs,
                                        const Tensors& targets, const StepMeters& meters = {});

absl::StatusOr<Profile> GraphFromShapes(const GraphModel& model,
                                        const std::vector<at::Tensor>& inputs,
                                        const Tensors& targets, const StepMeters& meters = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_SHAPE_PROFILER_H_
