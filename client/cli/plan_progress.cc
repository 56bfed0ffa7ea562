#include "client/cli/plan_progress.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stowage {

std::string TimeLeft(CallOptions::Clock::duration left) {
  const int64_t seconds = std::chrono::duration_cast<std::chrono::seconds>(left).count();
  return absl::StrCat(std::max<int64_t>(seconds, 0), " s left");
}

std::string ProgressText(const PlanProgress& progress, CallOptions::Clock::duration left) {
  std::string text;
  if (progress.best != nullptr) {
    const Plan& best = *progress.best;
    absl::StrAppend(&text, ToString(best.prediction.makespan), ", bound ",
                    ToString(best.bounds.lower_bound));
    absl::StrAppendFormat(&text, ", gap %.1f%%, ", 100 * best.gap());
  }
  return absl::StrCat(text, TimeLeft(left));
}

}  // namespace stowage
