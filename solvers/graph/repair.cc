#include "solvers/graph/repair.h"

#include <cstddef>
#include <cstdint>

namespace stowage {
namespace {

constexpr int kRounds = 8;

size_t Index(int v) { return static_cast<size_t>(v); }

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
bool KeepMore(const CheckpointGraph& graph, bool whole, std::vector<bool>* kept) {
  const Segmentation split = SplitAtCheckpoints(graph, *kept);
  std::vector<bool> allowed(split.segment_bytes.size(), true);
  ForEachFurtherEnd(graph, split, [&allowed](const FurtherEnd& end) {
    allowed[Index(end.segment)] = false;
    return true;
  });
  bool more = false;
  for (int v = 0; v < graph.size(); ++v) {
    const int segment = split.segment_of[Index(v)];
    if (segment == Segmentation::kCheckpoint || allowed[Index(segment)]) continue;
    if (!whole && !NextToCheckpoint(graph, split, v)) continue;
    (*kept)[Index(v)] = true;
    more = true;
  }
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
  const int64_t size = graph.size() + static_cast<int64_t>(graph.edge_count());
  absl::Status status = poll->Spend(16 * size);
  for (int round = 1; status.ok() && KeepMore(graph, round > kRounds, &kept); ++round) {
    status = poll->Spend(16 * size);
  }
  if (!status.ok()) return status;
  std::vector<int> all;
  for (int v = 0; v < graph.size(); ++v) {
    if (kept[Index(v)]) all.push_back(v);
  }
  return JudgeCheckpoints(graph, std::move(all), SegmentRule::kTwoEndPoints);
}

}  // namespace stowage
