#include "solvers/graph/limit_sweep.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <tuple>
#include <utility>

namespace stowage {
namespace {

// Largest segments in (above, limit]: every set with one of them costs at least `cost`.
struct Interval {
  int64_t cost;
  int64_t above;
  int64_t limit;

  friend bool operator>(const Interval& a, const Interval& b) {
    return std::tie(a.cost, a.above) > std::tie(b.cost, b.above);
  }
};

class LimitSweep {
 public:
  LimitSweep(int64_t most, int64_t work, DivisionSearch* search, const SolveOptions& options)
      : most_(most), work_(work), search_(search), options_(options) {}

  absl::StatusOr<SweepResult> Run() {
    absl::Status status = Sample();
    if (status.ok()) status = Sweep();
    if (status.ok() && next_ > too_small_) status = Halve();
    if (!status.ok()) return status;
    absl::StatusOr<std::vector<int>> checkpoints = search_->Checkpoints(best_limit_);
    if (!checkpoints.ok()) return checkpoints.status();
    SweepResult result;
    result.checkpoints = *std::move(checkpoints);
    result.objective = best_.objective();
    result.lower_bound = std::min(bound_, result.objective);
    result.limits_tried = tried_;
    return result;
  }

 private:
  absl::Status Try(int64_t limit) {
    const absl::StatusOr<LimitedSet> set = search_->Under(limit);
    if (!set.ok()) return set.status();
    current_ = *set;
    ++tried_;
    spent_ += search_->steps();
    if (best_limit_ < 0 || Improves()) {
      best_ = current_;
      best_limit_ = limit;
    }
    return absl::OkStatus();
  }
  bool Improves() const {
    const int64_t objective = current_.objective();
    return objective != best_.objective() ? objective < best_.objective()
                                          : current_.kept.count < best_.kept.count;
  }
  // The largest limit below `limit` that is worth trying, as far as `found` under it tells; below 0
  // if none is.
  int64_t NextBelow(int64_t limit, const LimitedSet& found) const {
    return std::min({limit, found.largest, best_.objective() - found.kept.bytes}) - 1;
  }

  // Finds a good set early, and a limit that is too small, by steps of a quarter.
  absl::Status Sample() {
    absl::Status status = Try(most_);
    const LimitedSet whole = current_;
    for (int64_t limit = most_ / 4 * 3; status.ok() && limit > 0; limit = limit / 4 * 3) {
      status = Try(limit);
      if (current_.kept.bytes >= best_.objective()) {
        too_small_ = limit;
        break;
      }
    }
    next_ = NextBelow(most_, whole);
    return status;
  }

  // With three quarters of the work.
  absl::Status Sweep() {
    while (next_ > too_small_ && spent_ < work_ / 4 * 3) {
      const absl::Status status = Try(next_);
      if (!status.ok()) return status;
      next_ = NextBelow(next_, current_);
      ReportProgress(std::max<int64_t>(next_, 0));
    }
    return absl::OkStatus();
  }

  // Looks where the bound is lowest, with the rest of the work.
  absl::Status Halve() {
    std::priority_queue<Interval, std::vector<Interval>, std::greater<>> open;
    const auto add = [&](int64_t above, int64_t limit) {
      if (limit <= above) return absl::OkStatus();
      const absl::Status status = Try(limit);
      const int64_t below = NextBelow(limit, current_);
      if (below > above) open.push({current_.kept.bytes + above + 1, above, below});
      return status;
    };
    absl::Status status = add(too_small_, next_);
    while (status.ok() && !open.empty() && open.top().cost < best_.objective() && spent_ < work_) {
      const auto [cost, above, limit] = open.top();
      open.pop();
      const int64_t middle = above + (limit - above) / 2;
      status = add(middle, limit);
      if (status.ok()) status = add(above, middle);
    }
    if (!open.empty()) bound_ = open.top().cost;
    return status;
  }

  // At most some hundred times: there may be as many limits as vertices.
  void ReportProgress(int64_t limit) {
    const int64_t step = most_ / 256 + 1;
    if (!options_.progress || limit > reported_ - step) return;
    reported_ = limit;
    options_.progress(1.0 - static_cast<double>(limit) / static_cast<double>(most_));
  }

  const int64_t most_;
  const int64_t work_;
  DivisionSearch* const search_;
  const SolveOptions& options_;
  LimitedSet current_;
  LimitedSet best_;
  int64_t best_limit_ = -1;
  int64_t too_small_ = -1;
  int64_t next_ = -1;  // larger ones are done
  int64_t bound_ = std::numeric_limits<int64_t>::max();
  int64_t spent_ = 0;
  int64_t tried_ = 0;
  int64_t reported_ = most_;
};

}  // namespace

absl::StatusOr<SweepResult> SweepLimits(int64_t most, int64_t work, DivisionSearch* search,
                                        const SolveOptions& options) {
  return LimitSweep(most, work, search, options).Run();
}

}  // namespace stowage
