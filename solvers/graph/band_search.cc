#include "solvers/graph/band_search.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stowage {
namespace {

constexpr size_t kBands = 40;
constexpr double kBandRatio = 0.85;
constexpr size_t kFirstWidth = 8;
// A search of twice the width takes about so many times the work.
constexpr int64_t kGrowth = 3;
// In the first round sets that are worse than the best by this share tell promising bands.
constexpr int64_t kSlackShare = 8;

}  // namespace

BandSearch::BandSearch(const CheckpointGraph& graph, const PathBound& bound,
                       const FrontierSearch& search, CheckpointAnswer* answer)
    : graph_(graph), search_(search), answer_(answer) {
  for (int64_t limit = best() - 1, above = limit; limit >= 0 && above > 0; limit = above) {
    above = static_cast<int64_t>(static_cast<double>(limit) * kBandRatio);
    if (bands_.size() + 1 == kBands) above = 0;
    const int64_t bytes = bound.LeastCheckpoints(limit).front() + bound.kept_off_path();
    bands_.push_back({above, limit, bytes + above, std::numeric_limits<int64_t>::max(), 0});
  }
}

absl::Status BandSearch::Run(int64_t work, StopPoll* poll,
                             const std::function<void(double)>& progress) {
  work_left_ = work;
  size_t share = bands_.size();
  Sort();
  for (size_t width = kFirstWidth; !bands_.empty(); width *= 2) {
    bool searched = false;
    const int64_t slack = width == kFirstWidth ? best() / kSlackShare : 0;
    for (size_t i = 0; i < std::min(share, bands_.size()); ++i) {
      Band& band = bands_[i];
      if (kGrowth * band.work > work_left_) continue;
      searched = true;
      const absl::Status status = Search(best() + slack, width, &band, poll);
      if (!status.ok()) return status;
      if (progress) progress(1.0 - static_cast<double>(work_left_) / static_cast<double>(work));
    }
    if (!searched) break;
    Sort();
    share = std::max<size_t>(share / 2, 1);
  }
  Bytes bound = answer_->set.objective();
  for (const Band& band : bands_) bound = std::min(bound, Bytes(band.bound));
  answer_->lower_bound = std::max(answer_->lower_bound, bound);
  return absl::OkStatus();
}

absl::Status BandSearch::Search(int64_t known, size_t width, Band* band, StopPoll* poll) {
  const CheckpointSet& set = answer_->set;
  FrontierSearchLimits limits;
  limits.above = band->above;
  limits.limit = std::min(band->limit, known);
  limits.known = known;
  limits.width = width;
  const auto recomputed = static_cast<double>((graph_.total() - set.checkpoint_bytes).value());
  limits.segment_rate =
      static_cast<double>(set.checkpoint_bytes.value()) / std::max(recomputed, 1.0);
  limits.work = work_left_;
  absl::StatusOr<FrontierSearchResult> result = search_.Run(limits, poll);
  if (!result.ok()) return result.status();
  band->work = result->work;
  work_left_ = std::max<int64_t>(work_left_ - result->work, 0);
  if (!result->checkpoints.empty()) {
    absl::StatusOr<CheckpointSet> found = JudgeCheckpoints(
        graph_, std::move(result->checkpoints), SegmentRule::kSeveralEndPoints, nullptr, poll);
    if (!found.ok()) return found.status();
    band->found = std::min(band->found, found->objective().value());
    if (IsBetter(*found, answer_->set)) answer_->set = *std::move(found);
  }
  if (result->complete) band->bound = std::max(band->bound, std::min(known, band->found));
  return absl::OkStatus();
}

void BandSearch::Sort() {
  const auto closed = [this](const Band& band) { return band.bound >= best(); };
  bands_.erase(std::remove_if(bands_.begin(), bands_.end(), closed), bands_.end());
  std::stable_sort(bands_.begin(), bands_.end(),
                   [](const Band& a, const Band& b) { return a.found < b.found; });
}

}  // namespace stowage
