// What a step took, instruction by instruction, against what the evaluator says of its schedule.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_MEASURED_PEAKS_H_
#define STOWAGE_TESTS_CLIENT_TORCH_MEASURED_PEAKS_H_

#include <vector>

#include "solvers/model/units.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Expects that no instruction took more memory than `planned`, the evaluator's timeline, has for it, and that
// the most of them is the step's peak. `inputs`: bytes that may be in memory where the plan does not have
// them: before a graph's sources have run, and where a caller holds on to them.
void ExpectPeaksAsPredicted(const Schedule& schedule, const MeasuredStep& measured,
                            const std::vector<TimelinePoint>& planned, Bytes inputs);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_MEASURED_PEAKS_H_
