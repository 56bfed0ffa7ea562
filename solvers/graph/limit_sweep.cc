#include "solvers/graph/limit_sweep.h"

#include <algorithm>

namespace stowage {
namespace {

class LimitSweep {
 public:
  LimitSweep(int64_t most, DivisionSearch* search, const SolveOptions& options)
      : most_(most), search_(search), options_(options), poll_(options.stop) {}

  absl::StatusOr<SweepResult> Run() {
    absl::Status status = Sample();
    if (status.ok()) status = Sweep();
    if (!status.ok()) return status;
    SweepResult result;
    search_->Under(best_limit_);
    result.checkpoints = search_->Checkpoints();
    result.objective = best_.objective();
    result.limits_tried = tried_;
    return result;
  }

 private:
  absl::Status Try(int64_t limit) {
    current_ = search_->Under(limit);
    ++tried_;
    if (best_limit_ < 0 || Improves()) {
      best_ = current_;
      best_limit_ = limit;
    }
    return poll_.Spend(search_->steps() << 2);
  }
  bool Improves() const {
    const int64_t objective = current_.objective();
    return objective != best_.objective() ? objective < best_.objective()
                                          : current_.kept.count < best_.kept.count;
  }

  // Finds a good set early, and a limit that is too small, by steps of a quarter.
  absl::Status Sample() {
    absl::Status status = Try(most_);
    for (int64_t limit = most_ / 4 * 3; status.ok() && limit > 0; limit = limit / 4 * 3) {
      status = Try(limit);
      if (current_.kept.bytes >= best_.objective()) {
        too_small_ = limit;
        break;
      }
    }
    return status;
  }

  absl::Status Sweep() {
    int64_t limit = most_;
    while (limit > too_small_) {
      absl::Status status = Try(limit);
      if (!status.ok()) return status;
      const int64_t known = std::min(current_.largest, best_.objective() - current_.kept.bytes);
      if (known <= 0) break;
      limit = std::min(limit, known) - 1;
      ReportProgress(limit);
    }
    return absl::OkStatus();
  }

  // At most some hundred times: there may be as many limits as vertices.
  void ReportProgress(int64_t limit) {
    const int64_t step = most_ / 256 + 1;
    if (!options_.progress || limit > reported_ - step) return;
    reported_ = limit;
    options_.progress(1.0 - static_cast<double>(limit) / static_cast<double>(most_));
  }

  const int64_t most_;
  DivisionSearch* const search_;
  const SolveOptions& options_;
  StopPoll poll_;
  LimitedSet current_;
  LimitedSet best_;
  int64_t best_limit_ = -1;
  int64_t too_small_ = -1;
  int64_t tried_ = 0;
  int64_t reported_ = most_;
};

}  // namespace

absl::StatusOr<SweepResult> SweepLimits(int64_t most, DivisionSearch* search,
                                        const SolveOptions& options) {
  return LimitSweep(most, search, options).Run();
}

}  // namespace stowage
