// The colours of pictures of plans. Their lightness alone tells neighbours apart, so that they can be read
// in grey, and by people who do not see all colours; hues are those of Okabe & Ito 2008, moved in
// lightness.
#ifndef STOWAGE_SOLVERS_VIZ_PICTURES_H_
#define STOWAGE_SOLVERS_VIZ_PICTURES_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/viz/drawn_plan.h"
#include "solvers/viz/step_timeline.h"

namespace stowage {

// On white: "#rrggbb".
const char* ColourOf(StepWork work);
const char* ColourOf(MemoryUse use);
// Of text on it.
const char* TextColourOn(StepWork work);

inline constexpr char kInk[] = "#16191d";
inline constexpr char kSoftInk[] = "#5c6570";
inline constexpr char kFaint[] = "#e3e6ea";
inline constexpr char kLaneGround[] = "#f4f5f7";
inline constexpr char kBudgetColour[] = "#b00040";

// All of them as declarations of a style sheet, for light pages and print: "--forward:#4583c0;...".
std::string PaletteCss();

// A step as a static figure for papers: streams over memory by use, with the budget, as SVG.
//
// What is narrower than half a pixel is drawn gathered: of lanes the work that takes most of it, of memory
// the most that is held in it, so that the peak is never lost.

struct StepFigure {
  std::string title;    // any characters; none: no space is left for it
  double width = 720;   // pixels, >= 320
  double height = 180;  // of memory, >= 60
};

// Complete, on white; no other program or font is needed. O(instructions).
std::string StepSvg(const DrawnPlan& plan, const StepFigure& figure = {});

// The graph of a plan as solvers/viz draws graphs: what is never computed a second time is dark, what is
// recomputed between has the colour of its segment.

enum class GraphPictureForm { kSvg, kDot };

// Vertices that share memory are one (solvers/graph/checkpoint_graph.h). Where no order of the segments
// computes them one by one, none has a colour. `plan` is one of `graph`. INVALID_ARGUMENT for a graph too
// large to be laid out (DrawSvg); as MakeCheckpointProblem.
absl::StatusOr<std::string> GraphPicture(const Graph& graph, const DrawnPlan& plan,
                                         GraphPictureForm form);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_PICTURES_H_
