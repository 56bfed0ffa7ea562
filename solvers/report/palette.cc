#include "solvers/report/palette.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr const char* kUseNames[kMemoryUses] = {"saved",  "activations",   "gradients",
                                                "copies", "communication", "workspace"};

}  // namespace

const char* ColourOf(StepWork work) {
  static constexpr const char* kColours[kStepWorks] = {"#4583c0", "#ee9c2a", "#1d3c68", "#0f6b5c",
                                                       "#94d9c7", "#b9c0c9", kSoftInk};
  return kColours[static_cast<size_t>(work)];
}

const char* ColourOf(MemoryUse use) {
  static constexpr const char* kColours[kMemoryUses] = {"#1d3c68", "#4484c2", "#994a1c",
                                                        "#46b29b", "#dfadd0", "#f1e4b4"};
  return kColours[static_cast<size_t>(use)];
}

const char* TextColourOn(StepWork work) {
  switch (work) {
    case StepWork::kForward:
    case StepWork::kBackward:
    case StepWork::kOffload:
      return "#ffffff";
    case StepWork::kRecompute:
    case StepWork::kPrefetch:
    case StepWork::kWait:
    case StepWork::kRelease:
      break;
  }
  return kInk;
}

std::string PaletteCss() {
  std::string css =
      absl::StrCat("--paper:#ffffff;--ink:", kInk, ";--soft:", kSoftInk, ";--faint:", kFaint,
                   ";--lane:", kLaneGround, ";--budget:", kBudgetColour, ";");
  for (size_t w = 0; w < kStepWorks; ++w) {
    const StepWork work = static_cast<StepWork>(w);
    if (work == StepWork::kRelease) continue;
    absl::StrAppend(&css, "--", ToString(work), ":", ColourOf(work), ";--on-", ToString(work), ":",
                    TextColourOn(work), ";");
  }
  for (size_t u = 0; u < kMemoryUses; ++u) {
    absl::StrAppend(&css, "--", kUseNames[u], ":", ColourOf(static_cast<MemoryUse>(u)), ";");
  }
  return css;
}

}  // namespace stowage
