// Progress of a solve of several parts, some of which are given up: reported only where it rises.
// Internal to solvers.
#ifndef STOWAGE_SOLVERS_RISING_PROGRESS_H_
#define STOWAGE_SOLVERS_RISING_PROGRESS_H_

#include <functional>
#include <utility>

#include "solvers/solver.h"

namespace stowage {

// Not thread-safe: progress is called on the solving thread alone.
class RisingProgress {
 public:
  explicit RisingProgress(std::function<void(double)> report) : report_(std::move(report)) {}

  void Report(double share) {
    if (!report_ || share <= last_) return;
    last_ = share;
    report_(share);
  }

  // The options of a part that does the shares [from, to] of the whole. The object must outlive it.
  SolveOptions Part(SolveOptions options, double from, double to) {
    if (!report_) return options;
    options.progress = [this, from, to](double share) { Report(from + (to - from) * share); };
    return options;
  }

 private:
  std::function<void(double)> report_;
  double last_ = -1.0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_RISING_PROGRESS_H_
