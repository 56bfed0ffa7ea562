// A step as a static figure for papers: streams over memory by use, with the budget, as SVG.
//
// What is narrower than half a pixel is drawn gathered: of lanes the work that takes most of it, of memory
// the most that is held in it, so that the peak is never lost.
#ifndef STOWAGE_SOLVERS_REPORT_STEP_SVG_H_
#define STOWAGE_SOLVERS_REPORT_STEP_SVG_H_

#include <string>

#include "solvers/report/drawn_plan.h"

namespace stowage {

struct StepFigure {
  std::string title;    // any characters; none: no room is left for it
  double width = 720;   // pixels, >= 320
  double height = 180;  // of memory, >= 60
};

// Complete, on white; no other program or font is needed. O(instructions).
std::string StepSvg(const DrawnPlan& plan, const StepFigure& figure = {});

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_STEP_SVG_H_
