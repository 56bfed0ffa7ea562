// One pass over a chain that runs every stage in each of its three ways and measures time and
// memory.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_PASS_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_PASS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/base/tensors.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/profile/cost_meter.h"
#include "solvers/model/units.h"

namespace stowage {

// The fields are those of Stage (solvers/model/chain.h), with the times of both forwards.
struct StageSample {
  Nanos forward_time;
  Nanos forward_saving_time;
  Nanos backward_time;
  bool stops = false;  // a recompute right before the backward ends at its last saved tensor:
  Nanos stopped_time;
  Bytes stopped_overhead;
  Bytes output;
  Bytes saved;
  std::vector<Bytes> saved_tensors;  // that can go to the host one by one
  Bytes output_gradient;
  Bytes forward_saving_overhead;
  Bytes forward_overhead;
  Bytes backward_overhead;
  bool random = false;
  bool stateful = false;
};

// Samples of stages 1..L+1 at their numbers; at 0 only output_gradient has a meaning. Holds all
// activations, but the saved tensors of one stage at a time. Buffers and random state are left as
// they were, gradients are added to. Side inputs, and gradients of those that ask for one, are in no sample.
// `stage_done`, if given, is called 2 (L + 1) times.
// No clock is read before the last stage has been given to the device. `watch` looks at buffers before and
// after stages, for which the device is waited; without, no stage is found stateful or breaking a rule
// about buffers.
// INVALID_ARGUMENT, naming the stage, if the model cannot run on these tensors; RESOURCE_EXHAUSTED
// out of memory.
absl::StatusOr<std::vector<StageSample>> RunProfilePass(const ChainModel& model,
                                                        const Tensors& inputs,
                                                        const Tensors& targets, CostMeter* costs,
                                                        bool watch,
                                                        const std::function<void()>& stage_done);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_PASS_H_
