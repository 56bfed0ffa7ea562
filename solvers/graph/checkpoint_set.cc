#include "solvers/graph/checkpoint_set.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/graph/internal/polled_loops.h"
#include "solvers/model/field_error.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Weakly connected parts of what lies between checkpoints.
class Parts {
 public:
  explicit Parts(int size) : parent_(Index(size)) { std::iota(parent_.begin(), parent_.end(), 0); }

  int Root(int v) {
    while (parent_[Index(v)] != v) {
      parent_[Index(v)] = parent_[Index(parent_[Index(v)])];
      v = parent_[Index(v)];
    }
    return v;
  }
  // The smaller vertex leads, so that parts are numbered by their first vertices.
  void Join(int a, int b) {
    a = Root(a);
    b = Root(b);
    parent_[Index(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

absl::StatusOr<std::vector<bool>> Members(const CheckpointGraph& graph,
                                          const std::vector<int>& checkpoints, StopPoll* poll) {
  std::vector<bool> kept(Index(graph.size()), false);
  for (const int v : checkpoints) {
    absl::Status status = poll->Spend(1 << 3);
    if (!status.ok()) return status;
    if (v < 0 || v >= graph.size()) {
      return FieldError("checkpoints", v, "must be a vertex of the graph");
    }
    if (kept[Index(v)]) return FieldError("checkpoints", v, "must be named once");
    kept[Index(v)] = true;
  }
  for (int v = 0; v < graph.size(); ++v) {
    const bool end = v == graph.source() || v == graph.target();
    if (kept[Index(v)] || !(end || graph.must_keep(v))) continue;
    return FieldError("checkpoints", absl::StrCat("without ", v),
                      end ? "must hold the source and the target" : "must hold what must be kept");
  }
  return kept;
}

// A checkpoint whose op needs its inputs holds all of them while any segment that feeds it runs
// backward. What two such ops share may count twice, but never more than there is.
absl::Status AddNeededInputs(const CheckpointGraph& graph, int checkpoint,
                             Segmentation* segmentation, StopPoll* poll) {
  absl::Status status = poll->Spend(static_cast<int64_t>(graph.inputs(checkpoint).size() + 1) << 3);
  if (!status.ok()) return status;
  std::vector<std::pair<int, int64_t>> fed;  // segment, bytes of it that the op reads
  int64_t all = 0;
  for (const int u : graph.inputs(checkpoint)) {
    const int segment = segmentation->segment_of[Index(u)];
    if (segment == Segmentation::kCheckpoint) continue;
    fed.push_back({segment, graph.bytes(u).value()});
    all += graph.bytes(u).value();
  }
  status = PolledSort(std::less<>(), &fed, poll);
  if (!status.ok()) return status;
  for (size_t begin = 0; begin < fed.size();) {
    int64_t own = 0;
    size_t end = begin;
    for (; end < fed.size() && fed[end].first == fed[begin].first; ++end) own += fed[end].second;
    Bytes& bytes = segmentation->segment_bytes[Index(fed[begin].first)];
    bytes = std::min(bytes + Bytes(all - own), graph.total());
    begin = end;
  }
  return status;
}

absl::Status CheckTwoEndPoints(const CheckpointGraph& graph, const Segmentation& segmentation,
                               StopPoll* poll) {
  absl::Status status;
  const auto refuse = [&status](const FurtherEnd& end) {
    status = FieldError(
        "checkpoints", absl::StrCat("... ", end.checkpoint, " ..."),
        absl::StrCat("the segment of vertex ", end.vertex, " must ",
                     end.is_start ? "read one checkpoint, reads " : "be read by one, is by ",
                     end.first, " too"));
    return false;
  };
  absl::Status visited = ForEachFurtherEnd(graph, segmentation, refuse, poll);
  return visited.ok() ? status : visited;
}

// Sorts checkpoints and segments topologically.
absl::Status CheckAcyclic(const CheckpointGraph& graph, const Segmentation& segmentation,
                          StopPoll* poll) {
  const int segments = static_cast<int>(segmentation.segment_bytes.size());
  const auto node = [&](int v) {
    const int segment = segmentation.segment_of[Index(v)];
    return segment == Segmentation::kCheckpoint ? segments + v : segment;
  };
  std::vector<std::vector<int>> members(Index(segments));
  std::vector<int64_t> waits(Index(segments + graph.size()), 0);
  const auto wait = [&](int v) {
    if (node(v) < segments) members[Index(node(v))].push_back(v);
    for (const int u : graph.inputs(v)) waits[Index(node(v))] += node(u) != node(v) ? 1 : 0;
  };
  absl::Status status = PolledVertices(graph, wait, poll);
  if (!status.ok()) return status;
  std::vector<int> ready = {node(graph.source())};
  int64_t done = 0;
  const auto finish = [&](int v) {
    ++done;
    status = poll->Spend(static_cast<int64_t>(graph.readers(v).size() + 1) << 3);
    for (const int r : graph.readers(v)) {
      if (node(r) != node(v) && --waits[Index(node(r))] == 0) ready.push_back(node(r));
    }
  };
  while (!ready.empty() && status.ok()) {
    const int next = ready.back();
    ready.pop_back();
    if (next >= segments) {
      finish(next - segments);
    } else {
      const std::vector<int>& inside = members[Index(next)];
      for (size_t i = 0; i < inside.size() && status.ok(); ++i) finish(inside[i]);
    }
  }
  if (!status.ok()) return status;
  if (done == graph.size()) return absl::OkStatus();
  const auto stuck = std::find_if(waits.begin(), waits.end(), [](int64_t w) { return w > 0; });
  const int first = static_cast<int>(stuck - waits.begin());
  const int v = first >= segments ? first - segments : members[Index(first)].front();
  return FieldError("checkpoints", absl::StrCat("around vertex ", v),
                    "must not leave a segment that waits for itself");
}

}  // namespace

const char* ToString(SegmentRule rule) {
  switch (rule) {
    case SegmentRule::kTwoEndPoints:
      return "two_end_points";
    case SegmentRule::kSeveralEndPoints:
      return "several_end_points";
  }
  return "?";
}

absl::StatusOr<Segmentation> SplitAtCheckpoints(const CheckpointGraph& graph,
                                                const std::vector<bool>& kept, StopPoll* poll) {
  Parts parts(graph.size());
  const auto join = [&](int v) {
    if (kept[Index(v)]) return;
    for (const int u : graph.inputs(v)) {
      if (!kept[Index(u)]) parts.Join(u, v);
    }
  };
  absl::Status status = PolledVertices(graph, join, poll);
  if (!status.ok()) return status;
  Segmentation result;
  result.segment_of.assign(Index(graph.size()), Segmentation::kCheckpoint);
  const auto place = [&](size_t i) {
    const int v = static_cast<int>(i);
    if (kept[i]) return;
    const int root = parts.Root(v);
    int& segment = result.segment_of[i];
    if (root == v) {
      segment = static_cast<int>(result.segment_bytes.size());
      result.segment_bytes.push_back(Bytes(0));
    } else {
      segment = result.segment_of[Index(root)];
    }
    result.segment_bytes[Index(segment)] += graph.bytes(v);
  };
  status = PolledLoop(kept.size(), 1 << 3, place, poll);
  if (!status.ok()) return status;
  return result;
}

absl::Status ForEachFurtherEnd(const CheckpointGraph& graph, const Segmentation& segmentation,
                               const std::function<bool(const FurtherEnd&)>& visit,
                               StopPoll* poll) {
  constexpr int kNone = -1;
  const size_t segments = segmentation.segment_bytes.size();
  std::vector<int> start(segments, kNone), end(segments, kNone);
  for (int v = 0; v < graph.size(); ++v) {
    absl::Status status = poll->Spend(static_cast<int64_t>(graph.inputs(v).size() + 1) << 3);
    if (!status.ok()) return status;
    const int to = segmentation.segment_of[Index(v)];
    for (const int u : graph.inputs(v)) {
      const int from = segmentation.segment_of[Index(u)];
      const bool is_start = from == Segmentation::kCheckpoint;
      if (is_start == (to == Segmentation::kCheckpoint)) continue;
      const int checkpoint = is_start ? u : v;
      int& first = is_start ? start[Index(to)] : end[Index(from)];
      if (first == kNone) first = checkpoint;
      if (first == checkpoint) continue;
      if (!visit({is_start ? to : from, is_start, checkpoint, first, is_start ? v : u})) {
        return absl::OkStatus();
      }
    }
  }
  return absl::OkStatus();
}

bool IsBetter(const CheckpointSet& a, const CheckpointSet& b) {
  if (a.objective() != b.objective()) return a.objective() < b.objective();
  if (a.checkpoints.size() != b.checkpoints.size()) {
    return a.checkpoints.size() < b.checkpoints.size();
  }
  return a.checkpoints < b.checkpoints;
}

absl::StatusOr<CheckpointSet> ValidateCheckpoints(const CheckpointGraph& graph,
                                                  std::vector<int> checkpoints, SegmentRule rule,
                                                  Segmentation* segmentation, StopPoll* poll) {
  StopPoll never(nullptr);
  if (poll == nullptr) poll = &never;
  const absl::StatusOr<std::vector<bool>> kept = Members(graph, checkpoints, poll);
  if (!kept.ok()) return kept.status();
  absl::StatusOr<Segmentation> split = SplitAtCheckpoints(graph, *kept, poll);
  if (!split.ok()) return split.status();
  absl::Status status = rule == SegmentRule::kTwoEndPoints ? CheckTwoEndPoints(graph, *split, poll)
                                                           : CheckAcyclic(graph, *split, poll);
  if (status.ok()) status = PolledSort(std::less<>(), &checkpoints, poll);
  if (!status.ok()) return status;

  CheckpointSet set;
  set.checkpoints = std::move(checkpoints);
  for (const int v : set.checkpoints) {
    set.checkpoint_bytes += graph.bytes(v);
    if (graph.needs_inputs(v)) status = AddNeededInputs(graph, v, &*split, poll);
    if (!status.ok()) return status;
  }
  for (const Bytes bytes : split->segment_bytes) {
    set.segment_bytes = std::max(set.segment_bytes, bytes);
  }
  if (segmentation != nullptr) *segmentation = *std::move(split);
  return set;
}

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
  return ValidateCheckpoints(graph, std::move(all), SegmentRule::kTwoEndPoints, nullptr, poll);
}

}  // namespace stowage
