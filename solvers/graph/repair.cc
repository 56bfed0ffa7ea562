#include "solvers/graph/repair.h"

#include <cstddef>

#include "solvers/graph/polled_loop.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

constexpr int kRounds = 8;

bool NextToCheckpoint(const CheckpointGraph& graph, const Segmentation& split, int v) {
  const auto is_checkpoint = [&split](int u) {
    return split.segment_of[Index(u)] == Segmentation::kCheckpoint;
  };
  for (const int u : graph.inputs(v)) {
    if (is_checkpoint(u)) return true;
  }
  for (const int u : graph.readers(v)) {
    if (is_checkpoint(u)) return true;
  }
  return false;
}

// Whether anything had to be kept beside what is.
absl::StatusOr<bool> KeepMore(const CheckpointGraph& graph, bool whole, std::vector<bool>* kept,
                              StopPoll* poll) {
  const absl::StatusOr<Segmentation> split = SplitAtCheckpoints(graph, *kept, poll);
  if (!split.ok()) return split.status();
  std::vector<bool> allowed(split->segment_bytes.size(), true);
  const auto refuse = [&allowed](const FurtherEnd& end) {
    allowed[Index(end.segment)] = false;
    return true;
  };
  absl::Status status = ForEachFurtherEnd(graph, *split, refuse, poll);
  if (!status.ok()) return status;
  bool more = false;
  const auto keep = [&](int v) {
    const int segment = split->segment_of[Index(v)];
    if (segment == Segmentation::kCheckpoint || allowed[Index(segment)]) return;
    if (!whole && !NextToCheckpoint(graph, *split, v)) return;
    (*kept)[Index(v)] = true;
    more = true;
  };
  status = PolledVertices(graph, keep, poll);
  if (!status.ok()) return status;
  return more;
}

}  // namespace

absl::StatusOr<CheckpointSet> RepairCheckpoints(const CheckpointGraph& graph,
                                                const std::vector<int>& checkpoints,
                                                StopPoll* poll) {
  std::vector<bool> kept(Index(graph.size()), false);
  for (const int v : checkpoints) kept[Index(v)] = true;
  for (int v = 0; v < graph.size(); ++v) {
    if (v == graph.source() || v == graph.target() || graph.must_keep(v)) kept[Index(v)] = true;
  }
  absl::StatusOr<bool> more = true;
  for (int round = 1; more.ok() && *more; ++round) {
    more = KeepMore(graph, round > kRounds, &kept, poll);
  }
  if (!more.ok()) return more.status();
  std::vector<int> all;
  for (int v = 0; v < graph.size(); ++v) {
    if (kept[Index(v)]) all.push_back(v);
  }
  return JudgeCheckpoints(graph, std::move(all), SegmentRule::kTwoEndPoints, nullptr, poll);
}

}  // namespace stowage
