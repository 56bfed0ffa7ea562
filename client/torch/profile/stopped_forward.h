// What a recompute takes that ends at its last saved tensor: how a profile measures it.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_STOPPED_FORWARD_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_STOPPED_FORWARD_H_

#include <ATen/core/Tensor.h>

#include <vector>

#include "client/torch/base/torch_status.h"
#include "client/torch/execute/node_runner.h"
#include "client/torch/execute/saved_slots.h"
#include "client/torch/profile/cost_meter.h"
#include "solvers/model/units.h"

namespace stowage {

// Of node v, whose first forward has filled `slots` and holds `own` bytes by them; sets stops, stopped_time and
// stopped_overhead of the sample, in place for the meter to fill in. Runs to its end what saves its output, what saves other
// tensors each time, and what must not run twice: of these nothing is noted.
template <class Sample>
void MeasureStoppedForward(int v, const std::vector<at::Tensor>& inputs, const SavedSlots& slots,
                           Bytes own, NodeRunner* runner, CostMeter* costs, Sample* sample) {
  if (slots.saves_output()) return;
  if (!slots.owns()) {
    sample->stops = own == Bytes(0);
    return;
  }
  SavedSlots again = slots.Emptied();
  bool filled = true;
  const Cost cost = costs->Measure(
      [&] {
        try {
          runner->ForwardStopped(v, inputs, &again);
        } catch (const StageRuleError&) {
          filled = false;
        }
      },
      &sample->stopped_time);
  sample->stops = filled && cost.kept == own;
  sample->stopped_overhead = cost.overhead();
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_STOPPED_FORWARD_H_
