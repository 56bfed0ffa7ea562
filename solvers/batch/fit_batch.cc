#include "solvers/batch/fit_batch.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int kNeighbours = 3;
constexpr int kMostSamples = 24;
constexpr int64_t kMostBatch = 1048576;
constexpr int64_t kDefaultBatch = 65536;

class Search {
 public:
  Search(const BatchSource& model, int64_t max_batch, const SolveProfile& solve)
      : model_(model), max_batch_(max_batch), solve_(solve), timeless_(model.timeless()) {}

  absl::StatusOr<BatchFit> Run() {
    absl::Status status = FindLargest();
    if (status.ok() && largest_ > 0 && !timeless_) status = SampleThroughput();
    if (!status.ok()) return status;
    BatchFit fit;
    fit.largest = largest_;
    if (const BatchPoint* best = Best()) {
      fit.fastest = best->batch_size;
      fit.samples_per_second = best->samples_per_second;
    }
    for (const auto& [batch, point] : points_) fit.points.push_back(point);
    return fit;
  }

 private:
  absl::Status FindLargest() {
    int64_t fits = 0, next = 1;
    while (next <= max_batch_) {
      int64_t over = max_batch_ + 1;
      while (next <= max_batch_) {
        absl::Status status = Look(next);
        if (!status.ok()) return status;
        if (!points_.at(next).fits) {
          over = next;
          break;
        }
        fits = next;
        next = std::max(fits + 1, std::min(2 * fits, max_batch_));
      }
      absl::Status status = Bisect(over, &fits);
      if (!status.ok()) return status;
      largest_ = fits;
      // Not one of the batches above, or on from there.
      next = max_batch_ + 1;
      for (int64_t b = fits + 1; b <= std::min(fits + kNeighbours, max_batch_); ++b) {
        status = Look(b);
        if (!status.ok()) return status;
        if (points_.at(b).fits) next = b;
      }
    }
    return absl::OkStatus();
  }

  absl::Status Bisect(int64_t over, int64_t* fits) {
    while (over - *fits > 1) {
      const int64_t middle = *fits + (over - *fits) / 2;
      absl::Status status = Look(middle);
      if (!status.ok()) return status;
      (points_.at(middle).fits ? *fits : over) = middle;
    }
    return absl::OkStatus();
  }

  absl::Status SampleThroughput() {
    for (const int64_t batch : model_.Suggested()) {
      if (batch > largest_) break;
      absl::Status status = Look(batch);
      if (!status.ok()) return status;
    }
    for (int samples = 0; samples < kMostSamples; ++samples) {
      const std::optional<int64_t> next = NextSample();
      if (!next) break;
      absl::Status status = Look(*next);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // Beside the best: the multiples of 8 next to it, then the middles of the gaps around it.
  std::optional<int64_t> NextSample() const {
    const BatchPoint* best = Best();
    if (best == nullptr) return std::nullopt;
    const int64_t b = best->batch_size;
    for (const int64_t eighth : {b / 8 * 8, (b / 8 + 1) * 8, (b / 8 - 1) * 8}) {
      if (IsNew(eighth)) return eighth;
    }
    const auto at = points_.find(b);
    const int64_t below = at == points_.begin() ? b : std::prev(at)->first;
    const int64_t above = std::next(at) == points_.end() ? b : std::next(at)->first;
    const int64_t low = b - (b - below) / 2, high = b + (above - b) / 2;
    if (b - below >= above - b)
      return IsNew(low) ? low : IsNew(high) ? std::optional(high) : std::nullopt;
    return IsNew(high) ? high : IsNew(low) ? std::optional(low) : std::nullopt;
  }

  bool IsNew(int64_t batch) const {
    return batch >= 1 && batch <= largest_ && points_.count(batch) == 0;
  }

  // The first of those with the most samples per second.
  const BatchPoint* Best() const {
    const BatchPoint* best = nullptr;
    for (const auto& [batch, point] : points_) {
      if (point.samples_per_second > (best == nullptr ? 0.0 : best->samples_per_second)) {
        best = &point;
      }
    }
    return best;
  }

  absl::Status Look(int64_t batch) {
    if (points_.count(batch) > 0) return absl::OkStatus();
    BatchPoint point;
    point.batch_size = batch;
    point.within_profiles = model_.Within(batch);
    const absl::StatusOr<Profile> profile = model_.At(batch);
    // What no profile can say fits no device.
    if (!profile.ok() && !absl::IsInvalidArgument(profile.status())) return profile.status();
    if (profile.ok()) {
      const absl::StatusOr<Plan> plan = solve_(*profile);
      if (!plan.ok()) return plan.status();
      point.fits = plan->status == PlanStatus::kFound;
      if (point.fits) Take(*plan, &point);
    }
    points_.emplace(batch, point);
    return absl::OkStatus();
  }

  void Take(const Plan& plan, BatchPoint* point) const {
    point->makespan = plan.prediction.makespan;
    point->peak = plan.prediction.peak;
    if (timeless_ || point->makespan == Nanos(0)) return;
    point->samples_per_second =
        static_cast<double>(point->batch_size) * 1e9 / static_cast<double>(point->makespan.value());
  }

  const BatchSource& model_;
  const int64_t max_batch_;
  const SolveProfile& solve_;
  const bool timeless_;
  int64_t largest_ = 0;
  std::map<int64_t, BatchPoint> points_;
};

}  // namespace

absl::StatusOr<BatchBounds> MakeBatchBounds(Bytes device_budget, Bytes reserved,
                                            int64_t max_batch_size) {
  if (device_budget < Bytes(0)) {
    return FieldError("device_budget_bytes", device_budget.value(), "must be >= 0");
  }
  if (reserved < Bytes(0) || reserved > device_budget) {
    return FieldError("reserved_bytes", reserved.value(), "must be in [0, device_budget_bytes]");
  }
  if (max_batch_size < 0 || max_batch_size > kMostBatch) {
    return FieldError("max_batch_size", max_batch_size,
                      absl::StrCat("must be in [0, ", kMostBatch, "]"));
  }
  return BatchBounds{device_budget - reserved,
                     max_batch_size == 0 ? kDefaultBatch : max_batch_size};
}

absl::StatusOr<BatchFit> FitBatch(const BatchSource& model, int64_t max_batch,
                                  const SolveProfile& solve) {
  return Search(model, max_batch, solve).Run();
}

}  // namespace stowage
