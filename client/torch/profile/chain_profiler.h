// Measures what every stage of a model costs: the profile that a plan is made from.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_CHAIN_PROFILER_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_CHAIN_PROFILER_H_

#include <ATen/core/Tensor.h>

#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/profile/device_description.h"
#include "client/torch/profile/profile_options.h"
#include "solvers/model/problem.h"

namespace stowage {

// A chain profile, under the autocast that is in force, with gradients of the input and of side inputs where those require
// one. Side inputs, and their gradients from the beginning on, are in all overheads (MakeChain).
// Bytes are exact for this input, overheads the largest seen, times medians over
// whole passes. Parameters, their gradients, buffers and random state are afterwards what they were
// before. For its own use the profiler holds a second set of gradients meanwhile.
//
// INVALID_ARGUMENT: the model has no stage or no loss, cannot run on these tensors, breaks a rule
// of ChainModel (the message names the stage), or options out of range. FAILED_PRECONDITION:
// nothing measures memory, or the bytes of a stage change from run to run. RESOURCE_EXHAUSTED: out
// of memory. Not thread-safe: nothing else may allocate tensors meanwhile.
absl::StatusOr<Profile> ProfileChain(const ChainModel& model, const Tensors& inputs,
                                     const Tensors& targets, const ProfileOptions& options = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_CHAIN_PROFILER_H_
