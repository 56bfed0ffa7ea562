// The colours of pictures of plans. Their lightness alone tells neighbours apart, so that they can be read
// in grey, and by people who do not see all colours; hues are those of Okabe & Ito 2008, moved in
// lightness. Internal to solvers/report.
#ifndef STOWAGE_SOLVERS_REPORT_PALETTE_H_
#define STOWAGE_SOLVERS_REPORT_PALETTE_H_

#include <string>

#include "solvers/report/step_timeline.h"

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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_PALETTE_H_
