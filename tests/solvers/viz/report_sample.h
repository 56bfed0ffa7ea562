// What tests of pictures draw: small, with every kind of instruction.
#ifndef STOWAGE_TESTS_SOLVERS_VIZ_REPORT_SAMPLE_H_
#define STOWAGE_TESTS_SOLVERS_VIZ_REPORT_SAMPLE_H_

#include "solvers/schedule/instance.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/plan.h"
#include "solvers/viz/drawn_plan.h"

namespace stowage::testing {

// Three stages and their loss, with a link; the second stage's name would end a script.
Instance SampleProblem();
// Recomputes the first stage, offloads the input.
Plan SamplePlan();
// Everything took a tenth longer.
MeasuredStep SampleMeasured();
DrawnPlan SampleDrawn(bool measured);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_VIZ_REPORT_SAMPLE_H_
