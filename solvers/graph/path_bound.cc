#include "solvers/graph/path_bound.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

#include "solvers/graph/polled_loop.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

constexpr int kNarrowings = 256;

absl::StatusOr<std::vector<int>> HeaviestPath(const CheckpointGraph& graph, StopPoll* poll) {
  std::vector<int64_t> heaviest(Index(graph.size()), 0);
  std::vector<int> before(Index(graph.size()), kNoIndex);
  const auto reach = [&](int v) {
    for (const int u : graph.inputs(v)) {
      int& known = before[Index(v)];
      if (known == kNoIndex || heaviest[Index(u)] > heaviest[Index(known)]) known = u;
    }
    const int u = before[Index(v)];
    heaviest[Index(v)] = graph.bytes(v).value() + (u == kNoIndex ? 0 : heaviest[Index(u)]);
  };
  const absl::Status status = PolledVertices(graph, reach, poll);
  if (!status.ok()) return status;
  std::vector<int> path;
  for (int v = graph.target(); v != kNoIndex; v = before[Index(v)]) path.push_back(v);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

absl::StatusOr<PathBound> PathBound::Create(const CheckpointGraph& graph, StopPoll* poll) {
  absl::StatusOr<std::vector<int>> path = HeaviestPath(graph, poll);
  if (!path.ok()) return path.status();
  PathBound bound;
  bound.path_ = *std::move(path);
  const auto kept = [&graph](int v) {
    return v == graph.source() || v == graph.target() || graph.must_keep(v);
  };
  for (int v = 0; v < graph.size(); ++v) {
    if (kept(v)) bound.kept_off_path_ += graph.bytes(v).value();
  }
  for (const int v : bound.path_) {
    bound.bytes_.push_back(graph.bytes(v).value());
    bound.must_keep_.push_back(kept(v));
    if (kept(v)) bound.kept_off_path_ -= graph.bytes(v).value();
  }
  const absl::Status status = poll->Spend(int64_t{graph.size()} << 3);
  if (!status.ok()) return status;
  return bound;
}

std::vector<int64_t> PathBound::LeastCheckpoints(int64_t limit) const {
  const size_t length = path_.size();
  std::vector<int64_t> least(length + 1, 0);
  std::vector<int64_t> after(length + 1, 0);  // bytes of path()[i..]
  // Where the next checkpoint may be: rising positions, from the back, of falling cost.
  std::vector<size_t> window(length);
  size_t first = 0, last = 0;
  const auto cost = [&](size_t k) { return bytes_[k] + least[k + 1]; };
  for (size_t i = length; i-- > 0;) {
    after[i] = after[i + 1] + bytes_[i];
    if (must_keep_[i]) first = last;
    while (last > first && cost(window[last - 1]) >= cost(i)) --last;
    window[last++] = i;
    while (after[i] - after[window[first]] > limit) ++first;
    least[i] = cost(window[first]);
  }
  return least;
}

absl::StatusOr<int64_t> PathBound::LeastObjective(StopPoll* poll) const {
  // Intervals (above, limit] of the largest run, by what every set in them costs at least.
  using Interval = std::tuple<int64_t, int64_t, int64_t>;  // cost, above, limit
  std::priority_queue<Interval, std::vector<Interval>, std::greater<Interval>> open;
  int64_t total = 0;
  for (const int64_t bytes : bytes_) total += bytes;
  const auto add = [&](int64_t above, int64_t limit) {
    if (limit > above) open.push({LeastCheckpoints(limit).front() + above + 1, above, limit});
  };
  add(-1, total);
  for (int i = 0; i < kNarrowings; ++i) {
    const auto [cost, above, limit] = open.top();
    if (limit - above <= std::max<int64_t>(cost / 1000, 1)) break;
    open.pop();
    const absl::Status status = poll->Spend(8 * static_cast<int64_t>(path_.size()));
    if (!status.ok()) return status;
    const int64_t middle = above + (limit - above) / 2;
    add(above, middle);
    add(middle, limit);
  }
  return std::get<0>(open.top()) + kept_off_path_;
}

}  // namespace stowage
