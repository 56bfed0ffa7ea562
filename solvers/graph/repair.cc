#include "solvers/graph/repair.h"

#include <cstddef>

namespace stowage {
namespace {

constexpr int kNone = -1;
constexpr int kRounds = 8;

size_t Index(int v) { return static_cast<size_t>(v); }

// By segment: whether it has two end points.
std::vector<bool> Allowed(const CheckpointGraph& graph, const Segmentation& split) {
  const size_t segments = split.segment_bytes.size();
  std::vector<int> start(segments, kNone), end(segments, kNone);
  std::vector<bool> allowed(segments, true);
  const auto meet = [&allowed](int segment, int checkpoint, std::vector<int>* known) {
    int& first = (*known)[Index(segment)];
    if (first == kNone) first = checkpoint;
    if (first != checkpoint) allowed[Index(segment)] = false;
  };
  for (int v = 0; v < graph.size(); ++v) {
    const int to = split.segment_of[Index(v)];
    for (const int u : graph.inputs(v)) {
      const int from = split.segment_of[Index(u)];
      if (from == to) continue;
      if (from == Segmentation::kCheckpoint) meet(to, u, &start);
      if (to == Segmentation::kCheckpoint) meet(from, v, &end);
    }
  }
  return allowed;
}

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
  const std::vector<bool> allowed = Allowed(graph, split);
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

CheckpointSet RepairCheckpoints(const CheckpointGraph& graph, const std::vector<int>& checkpoints) {
  std::vector<bool> kept(Index(graph.size()), false);
  for (const int v : checkpoints) kept[Index(v)] = true;
  for (int v = 0; v < graph.size(); ++v) {
    if (v == graph.source() || v == graph.target() || graph.must_keep(v)) kept[Index(v)] = true;
  }
  for (int round = 1; KeepMore(graph, round > kRounds, &kept); ++round) {
  }
  std::vector<int> all;
  for (int v = 0; v < graph.size(); ++v) {
    if (kept[Index(v)]) all.push_back(v);
  }
  return *JudgeCheckpoints(graph, std::move(all), SegmentRule::kTwoEndPoints);
}

}  // namespace stowage
