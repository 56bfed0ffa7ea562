// What a step took, instruction by instruction, against what the referee says of its schedule.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_MEASURED_PEAKS_H_
#define STOWAGE_TESTS_CLIENT_TORCH_MEASURED_PEAKS_H_

#include "client/torch/execution_device.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "solvers/plan/measured_step.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// Expects that no instruction took more memory than predicted, and that the most of them is the step's
// peak. `inputs`: bytes that may be in memory where the plan does not have them: before a graph's sources
// have run, and where a caller holds on to them. `device` may be null: one without a link.
void ExpectPeaksAsPredicted(const Chain& chain, const Schedule& schedule,
                            const MeasuredStep& measured, Bytes inputs,
                            const ExecutionDevice* device = nullptr);
void ExpectPeaksAsPredicted(const Graph& graph, const Schedule& schedule,
                            const MeasuredStep& measured, Bytes inputs,
                            const ExecutionDevice* device = nullptr);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_MEASURED_PEAKS_H_
