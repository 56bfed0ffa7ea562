#include "solvers/graph/linearize.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "solvers/model/index.h"
#include "solvers/schedule/graph_liveness.h"

namespace stowage {
namespace {

// Who uses each tensor, by the position of the vertex that owns its bytes.
struct Uses {
  // The last vertex that writes over it in place; kNoIndex: none does.
  std::vector<int> last_writer;
  std::vector<int>
      last_reader;  // kNoIndex: never read; size(): read after the end (an output of the network)
  std::vector<int> last_backward_need;  // the backward, in backward order, that is the last to need
                                        // it: the smallest position; kNoIndex: none does
};

Uses FindVertexUses(const Graph& graph) {
  const size_t n = Index(graph.size());
  Uses uses{std::vector<int>(n, kNoIndex), std::vector<int>(n, kNoIndex),
            std::vector<int>(n, kNoIndex)};
  std::vector<bool> read(n, false);
  const auto need = [&uses](int root, int position) {
    int& last = uses.last_backward_need[Index(root)];
    last = last == kNoIndex ? position : std::min(last, position);
  };
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    for (const GraphInput& input : v.inputs) {
      const int reads = static_cast<int>(input.vertex);
      const int root = graph.storage(reads);
      read[Index(reads)] = true;
      uses.last_reader[Index(root)] = std::max(uses.last_reader[Index(root)], p);
      if (input.backward_needs) need(root, p);
    }
    if (v.backward_needs_output) need(graph.storage(p), p);
    if (v.alias == AliasKind::kInPlace) uses.last_writer[Index(graph.storage(p))] = p;
  }
  for (int p = 0; p < graph.size() - 1; ++p) {
    if (!read[Index(p)]) uses.last_reader[Index(graph.storage(p))] = graph.size();
  }
  return uses;
}

// The one tensor that crosses each cut, by position; kNoIndex where several do, or none.
std::vector<int> CrossingTensor(const Graph& graph, const Uses& uses) {
  const size_t n = Index(graph.size());
  std::vector<int64_t> count(n + 1, 0), sum(n + 1, 0);
  for (int root = 0; root < graph.size(); ++root) {
    const int last = std::min(uses.last_reader[Index(root)], graph.size());
    if (graph.storage(root) != root || last <= root) continue;
    count[Index(root)] += 1;
    sum[Index(root)] += root;
    count[Index(last)] -= 1;
    sum[Index(last)] -= root;
  }
  std::vector<int> crossing(n, kNoIndex);
  int64_t alive = 0, alive_sum = 0;
  for (size_t p = 0; p < n; ++p) {
    alive += count[p];
    alive_sum += sum[p];
    if (alive == 1) crossing[p] = static_cast<int>(alive_sum);
  }
  return crossing;
}

// Vertices first..last of the program, and the tensor they leave behind (kNoIndex if they leave only
// an older one).
struct Segment {
  int first;
  int last;
  int output;
};

std::vector<Segment> CutAtSplittingVertices(const Graph& graph, const Uses& uses) {
  const std::vector<int> crossing = CrossingTensor(graph, uses);
  std::vector<Segment> segments;
  int first = 0;
  for (int p = 0; p < graph.size(); ++p) {
    const bool end = p == graph.size() - 1;
    const int output = end ? graph.storage(p) : crossing[Index(p)];
    // A tensor that is written over later cannot be the input of a stage that runs twice.
    const bool final_value = end || output == kNoIndex || uses.last_writer[Index(output)] <= p;
    if (end || (output >= first && final_value)) {
      segments.push_back({first, p, output >= first ? output : kNoIndex});
      first = p + 1;
    }
  }
  return segments;
}

// Replays one segment alone and derives the stage that stands for it.
class SegmentCosts {
 public:
  SegmentCosts(const Graph& graph, const Uses& uses, const Segment& segment)
      : graph_(graph), uses_(uses), segment_(segment) {}

  Stage Derive() const {
    Stage stage;
    stage.name = graph_.vertex(segment_.last).name;
    stage.op_kind = "segment";
    for (int p = segment_.first; p <= segment_.last; ++p) AddVertex(graph_.vertex(p), &stage);
    if (segment_.output != kNoIndex) {
      stage.output = graph_.bytes(segment_.output);
      stage.output_gradient = graph_.vertex(segment_.output).output_gradient;
    }
    stage.saved = SavedBytes();
    stage.forward_saving_overhead = ForwardPeak(Keeping::kSaved) - stage.saved;
    stage.forward_overhead = ForwardPeak(Keeping::kOutput) - stage.output;
    stage.backward_overhead = BackwardPeak();
    SetStoppedRecompute(&stage);
    return stage;
  }

 private:
  // What a forward of the segment leaves.
  enum class Keeping { kOutput, kSaved, kSavedWithoutOutput };

  static void AddVertex(const Vertex& v, Stage* stage) {
    stage->forward_time += v.forward_time;
    stage->backward_time += v.backward_time;
    stage->transient_parameters += v.transient_parameters;
    stage->random |= v.random;
    stage->stateful |= v.stateful;
    stage->collective |= v.collective;
    stage->must_keep |= v.must_keep || v.inputs.empty();
  }

  // A segment stops early where its last vertex does: nothing but its own backward could need the
  // output then.
  void SetStoppedRecompute(Stage* stage) const {
    const Vertex& last = graph_.vertex(segment_.last);
    if (!last.stops() || segment_.output != segment_.last || last.backward_needs_output) return;
    stage->recompute_saving_time = stage->forward_time - last.forward_time + last.stopped_time();
    stage->recompute_saving_overhead =
        ForwardPeak(Keeping::kSavedWithoutOutput) - (stage->saved - stage->output);
  }

  bool Inside(int position) const {
    return position >= segment_.first && position <= segment_.last;
  }
  bool IsSaved(int root) const {
    return root == segment_.output || uses_.last_backward_need[Index(root)] != kNoIndex;
  }

  Bytes SavedBytes() const {
    Bytes saved;
    for (int p = segment_.first; p <= segment_.last; ++p) {
      saved += graph_.vertex(p).extra_saved;
      if (graph_.storage(p) == p && IsSaved(p)) saved += graph_.bytes(p);
    }
    return saved;
  }

  // The tensors that the vertex reads and the one it lives in, each once.
  std::vector<int> Touched(int position) const {
    std::vector<int> roots = {graph_.storage(position)};
    for (const GraphInput& input : graph_.vertex(position).inputs) {
      roots.push_back(graph_.storage(static_cast<int>(input.vertex)));
    }
    std::sort(roots.begin(), roots.end());
    roots.erase(std::unique(roots.begin(), roots.end()), roots.end());
    return roots;
  }

  // Whether no vertex after `position` reads the tensor. It must be one that `position` touches.
  bool ReadLastBy(int root, int position) const {
    return uses_.last_reader[Index(root)] <= position;
  }

  Bytes ForwardPeak(Keeping keeping) const {
    const bool saving = keeping != Keeping::kOutput;
    Bytes alive, peak;
    for (int p = segment_.first; p <= segment_.last; ++p) {
      const Vertex& v = graph_.vertex(p);
      if (saving) alive += v.extra_saved;
      if (keeping == Keeping::kSavedWithoutOutput && p == segment_.last) {
        return std::max(peak, alive + v.stopped_overhead());
      }
      alive += graph_.bytes(p);
      peak = std::max(peak, alive + (saving ? v.forward_saving_overhead : v.forward_overhead));
      for (const int root : Touched(p)) {
        const bool stays = root == segment_.output || (saving && IsSaved(root));
        if (Inside(root) && !stays && ReadLastBy(root, p)) alive -= graph_.bytes(root);
      }
    }
    return peak;
  }

  // Above what is held before the backward: the saved tensors, the output's gradient, the input.
  Bytes BackwardPeak() const {
    Bytes above, peak;
    // Gradients held of tensors made inside, and of any made before (only the input's, by the cut).
    std::vector<bool> has_gradient(Index(segment_.last - segment_.first + 1), false);
    bool input_has_gradient = false;
    if (segment_.output != kNoIndex) has_gradient[Index(segment_.output - segment_.first)] = true;
    const auto add_gradient = [&](int root) {
      const bool held =
          Inside(root) ? has_gradient[Index(root - segment_.first)] : input_has_gradient;
      if (held) return;
      if (Inside(root)) {
        has_gradient[Index(root - segment_.first)] = true;
      } else {
        input_has_gradient = true;
      }
      above += graph_.vertex(root).output_gradient;
    };
    if (segment_.last == graph_.size() - 1) {
      // Those of all outputs of the network are there from the first backward on. No cut is after
      // an output, but one that is the last segment's input.
      const std::vector<bool> seeds = SeedStorages(graph_);
      for (int p = 0; p < graph_.size(); ++p) {
        if (seeds[Index(p)]) add_gradient(p);
      }
    }
    for (int p = segment_.last; p >= segment_.first; --p) {
      for (const GraphInput& input : graph_.vertex(p).inputs) {
        add_gradient(graph_.storage(static_cast<int>(input.vertex)));
      }
      peak = std::max(peak, above + graph_.vertex(p).backward_overhead);
      above -= FreedAfterBackward(p);
      if (graph_.storage(p) == p && has_gradient[Index(p - segment_.first)]) {
        above -= graph_.vertex(p).output_gradient;
      }
    }
    return peak;
  }

  // Saved bytes that no backward after that of `position` needs.
  Bytes FreedAfterBackward(int position) const {
    Bytes freed = graph_.vertex(position).extra_saved;
    for (const int root : Touched(position)) {
      if (Inside(root) && uses_.last_backward_need[Index(root)] == position)
        freed += graph_.bytes(root);
    }
    return freed;
  }

  const Graph& graph_;
  const Uses& uses_;
  const Segment& segment_;
};

// Whether the segment is just the first vertex, an input of the graph, and takes nothing but its
// output: that is a^0 and no stage.
bool IsChainInput(const Graph& graph, const Segment& segment) {
  const Vertex& v = graph.vertex(0);
  const Bytes besides =
      v.extra_saved + v.forward_overhead + v.forward_saving_overhead + v.backward_overhead;
  return segment.first == 0 && segment.last == 0 && graph.size() > 1 && besides == Bytes(0);
}

}  // namespace

absl::StatusOr<LinearizedGraph> Linearize(const Graph& graph) {
  const Uses uses = FindVertexUses(graph);
  ChainSpec spec;
  spec.name = graph.name();
  std::vector<int> stage_begin;
  for (const Segment& segment : CutAtSplittingVertices(graph, uses)) {
    if (IsChainInput(graph, segment)) {
      spec.input = graph.bytes(0);
      spec.input_gradient = graph.vertex(0).output_gradient;
      continue;
    }
    spec.stages.push_back(SegmentCosts(graph, uses, segment).Derive());
    stage_begin.push_back(segment.first);
  }
  stage_begin.push_back(graph.size());
  absl::StatusOr<Chain> chain = Chain::Create(std::move(spec));
  if (!chain.ok()) return chain.status();
  return LinearizedGraph{*std::move(chain), std::move(stage_begin)};
}

namespace {

// The positions first..end-1, in reverse for backwards.
void Append(Op op, int first, int end, Schedule* compute) {
  for (int k = first; k < end; ++k) {
    const int position = op == Op::kBackward ? end - 1 - (k - first) : k;
    compute->push_back({op, position + 1});
  }
}

}  // namespace

Schedule ExpandSchedule(const Graph& graph, const LinearizedGraph& linearized,
                        const Schedule& schedule) {
  const std::vector<int>& begin = linearized.stage_begin;
  Schedule compute;
  Append(Op::kForwardSave, 0, begin.front(), &compute);
  for (const Instruction& i : schedule) {
    const size_t l = static_cast<size_t>(i.stage);
    if (l < 1 || l >= begin.size()) continue;  // a^0 and the loss have no vertices
    const int first = begin[l - 1], end = begin[l];
    if (i.op == Op::kForwardNoSaveFreeInput) {
      Append(Op::kForwardNoSave, first, end, &compute);
    } else if (IsForward(i.op) || i.op == Op::kBackward) {
      Append(i.op, first, end, &compute);
    }
  }
  Append(Op::kBackward, 0, begin.front(), &compute);
  return WithDiscards(graph, compute);
}

}  // namespace stowage
