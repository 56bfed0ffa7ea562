#include "solvers/graph/frontier_search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "solvers/graph/frontier_state.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

constexpr uint32_t kNoState = std::numeric_limits<uint32_t>::max();
// Making a state takes as long as comparing so many.
constexpr int64_t kWorkPerState = 20;

// The state a state came from, and whether the vertex in between was kept.
struct Origin {
  uint32_t parent;
  bool kept;
};

// The states after one step, the dominated ones left out.
class Layer {
 public:
  size_t size() const { return states_.size(); }
  const FrontierState& state(size_t i) const { return states_[i]; }
  const std::vector<Origin>& origins() const { return origins_; }

  void Clear(size_t expected) {
    states_.clear();
    origins_.clear();
    next_.clear();
    free_.clear();
    size_t buckets = 16;
    while (buckets < 2 * expected) buckets *= 2;
    heads_.assign(buckets, kNoState);
  }

  // Returns how many states it was compared with.
  int64_t Add(FrontierState state, Origin origin) {
    const size_t bucket = state.Hash() & (heads_.size() - 1);
    int64_t compared = 1;
    for (uint32_t* link = &heads_[bucket]; *link != kNoState; ++compared) {
      const uint32_t i = *link;
      const bool agrees = states_[i].AgreesWith(state);
      if (agrees && states_[i].Dominates(state)) return compared;
      if (agrees && state.Dominates(states_[i])) {
        free_.push_back(i);
        *link = next_[i];
      } else {
        link = &next_[i];
      }
    }
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(states_.size()));
      states_.push_back(state);
      origins_.push_back(origin);
      next_.push_back(kNoState);
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    states_[place] = std::move(state);
    origins_[place] = origin;
    next_[place] = std::exchange(heads_[bucket], place);
    return compared;
  }

  // Ends the additions.
  void Settle() {
    std::sort(free_.begin(), free_.end(), std::greater<>());
    for (const uint32_t i : free_) {
      states_[i] = std::move(states_.back());
      origins_[i] = origins_.back();
      states_.pop_back();
      origins_.pop_back();
    }
  }

  // Keeps the states of the smallest ranks, the earlier ones among equals.
  template <class Rank>
  void Cut(size_t width, const Rank& rank) {
    std::vector<std::pair<double, uint32_t>> ranks(size());
    for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = {rank(states_[i]), i};
    std::nth_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(width),
                     ranks.end());
    ranks.resize(width);
    std::sort(ranks.begin(), ranks.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    for (size_t i = 0; i < width; ++i) {
      states_[i] = std::move(states_[ranks[i].second]);
      origins_[i] = origins_[ranks[i].second];
    }
    states_.erase(states_.begin() + static_cast<std::ptrdiff_t>(width), states_.end());
    origins_.resize(width);
  }

 private:
  std::vector<FrontierState> states_;
  std::vector<Origin> origins_;
  std::vector<uint32_t> heads_;
  std::vector<uint32_t> next_;  // of the same bucket
  std::vector<uint32_t> free_;  // places of dominated states
};

}  // namespace

FrontierSearch::FrontierSearch(const CheckpointGraph& graph, const PathBound& bound,
                               FrontierOrder order)
    : graph_(graph), bound_(bound), order_(std::move(order)) {
  const size_t steps = order_.steps.size();
  path_from_.assign(steps + 1, bound.path().size());
  kept_from_.assign(steps + 1, 0);
  std::vector<bool> on_path(steps, false);
  for (const int v : bound.path()) on_path[Index(v)] = true;
  for (size_t i = steps; i-- > 0;) {
    const int v = order_.steps[i].vertex;
    path_from_[i] = path_from_[i + 1] - (on_path[Index(v)] ? 1 : 0);
    const bool paid = !on_path[Index(v)] && graph.must_keep(v);
    kept_from_[i] = kept_from_[i + 1] + (paid ? graph.bytes(v).value() : 0);
  }
}

absl::StatusOr<FrontierSearchResult> FrontierSearch::Run(const FrontierSearchLimits& limits,
                                                         StopPoll* poll) const {
  const std::vector<int64_t> least = bound_.LeastCheckpoints(limits.limit);
  std::vector<std::vector<Origin>> trail;
  trail.reserve(order_.steps.size());
  Layer layer, next;
  layer.Clear(1);
  layer.Add(FrontierState(limits.above), {kNoState, false});
  FrontierSearchResult result;
  result.complete = true;
  for (size_t i = 0; i < order_.steps.size(); ++i) {
    const FrontierStep& step = order_.steps[i];
    const int64_t rest = least[path_from_[i + 1]] + kept_from_[i + 1];
    next.Clear(2 * layer.size());
    int64_t work = 0;
    const auto add = [&](FrontierState state, Origin origin) {
      if (state.largest() > limits.limit) return;
      if (state.checkpoint_bytes() + rest + state.largest() >= limits.known) return;
      work += next.Add(std::move(state), origin);
    };
    const int v = step.vertex;
    const bool must = v == graph_.source() || v == graph_.target() || graph_.must_keep(v);
    for (uint32_t s = 0; s < layer.size(); ++s) {
      FrontierState kept = layer.state(s);
      if (!must) {
        FrontierState joined = kept;
        if (joined.Join(graph_, step)) add(std::move(joined), {s, false});
      }
      kept.Keep(graph_, order_, step);
      add(std::move(kept), {s, true});
      work += 2 * kWorkPerState;
    }
    result.work += work;
    const absl::Status status = poll->Spend(2 * work);
    if (!status.ok()) return status;
    next.Settle();
    if (next.size() == 0) return result;
    if (result.work > limits.work) {
      result.complete = false;
      return result;
    }
    if (next.size() > limits.width) {
      result.complete = false;
      next.Cut(limits.width, [&](const FrontierState& state) {
        return static_cast<double>(state.checkpoint_bytes() + state.largest()) +
               limits.segment_rate * state.open_bytes();
      });
    }
    trail.push_back(next.origins());
    std::swap(layer, next);
  }
  // All segments are closed, so that one state is left per trade between the two sums.
  uint32_t best = 0;
  const auto objective = [&layer](uint32_t s) {
    return layer.state(s).checkpoint_bytes() + layer.state(s).largest();
  };
  for (uint32_t s = 1; s < layer.size(); ++s) {
    if (objective(s) < objective(best)) best = s;
  }
  result.objective = objective(best);
  for (size_t i = trail.size(); i-- > 0;) {
    const Origin origin = trail[i][best];
    if (origin.kept) result.checkpoints.push_back(order_.steps[i].vertex);
    best = origin.parent;
  }
  std::sort(result.checkpoints.begin(), result.checkpoints.end());
  return result;
}

}  // namespace stowage
