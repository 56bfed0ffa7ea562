#include "solvers/graph/internal/proposals.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/model/index.h"

namespace stowage {

namespace {}  // namespace

absl::StatusOr<std::vector<int>> DivisionTreeSegments(const Graph& graph, const FoldedGraph& folded,
                                                      const SolveContext& context) {
  absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(graph);
  if (!problem.ok()) return problem.status();
  const absl::StatusOr<CheckpointAnswer> answer =
      DivisionTreeSolver().Solve(problem->graph, context);
  if (!answer.ok()) return answer.status();
  StopPoll poll(context.stop());
  Segmentation segmentation;
  const absl::StatusOr<CheckpointSet> validated = ValidateCheckpoints(
      problem->graph, answer->set.checkpoints, SegmentRule::kTwoEndPoints, &segmentation, &poll);
  if (absl::IsInvalidArgument(validated.status())) {
    return absl::InternalError(validated.status().message());
  }
  if (!validated.ok()) return validated.status();
  std::vector<int> segment_of_position(Index(graph.size()), Segmentation::kCheckpoint);
  for (int v = 0; v < problem->graph.size(); ++v) {
    for (const int p : problem->members[Index(v)]) {
      segment_of_position[Index(p)] = segmentation.segment_of[Index(v)];
    }
  }
  std::vector<int> segment_of;
  for (const std::vector<int>& members : folded.members) {
    segment_of.push_back(segment_of_position[Index(members.back())]);
  }
  return segment_of;
}

absl::StatusOr<ComputeOrder> CheckpointTraining(const Graph& graph, const FoldedGraph& folded,
                                                const OpGraph& ops, const SolveContext& context) {
  const absl::StatusOr<std::vector<int>> segment_of = DivisionTreeSegments(graph, folded, context);
  if (!segment_of.ok()) return segment_of.status();
  return CheckpointOrder(ops, *segment_of);
}

namespace {

// The last vertex that reads the tensor; itself if none does.
int LastReader(const OpGraph& graph, int v) {
  return graph.readers(v).empty() ? v : graph.readers(v).back();
}

// Bytes of the tensors that cross each position of the program.
std::vector<int64_t> CrossingBytes(const OpGraph& graph) {
  std::vector<int64_t> change(Index(graph.size()) + 1, 0);
  for (int v = 0; v < graph.size(); ++v) {
    change[Index(v)] += graph.costs(v).output;
    change[Index(LastReader(graph, v))] -= graph.costs(v).output;
  }
  for (size_t p = 1; p < change.size(); ++p) change[p] += change[p - 1];
  return change;
}

bool BackwardReads(const OpGraph& graph, int v) {
  if (graph.costs(v).backward_needs_output) return true;
  for (const int reader : graph.readers(v)) {
    for (const OpGraph::Input& input : graph.inputs(reader)) {
      if (input.vertex == v && input.backward_needs) return true;
    }
  }
  return false;
}

class StageCosts {
 public:
  StageCosts(const OpGraph& graph, int first, int last)
      : graph_(graph), first_(first), last_(last) {}

  // Without what crosses the end but was made before.
  Stage Derive() const {
    Stage stage;
    int64_t saved = 0, output = 0, forward = 0, forward_peak = 0, saving_overhead = 0;
    std::vector<int64_t> freed(Index(last_ - first_ + 1), 0);  // by last reader, inside the stage
    int64_t backward_peak = 0;
    for (int v = first_; v <= last_; ++v) {
      const OpGraph::Costs& costs = graph_.costs(v);
      const int reader = LastReader(graph_, v);
      if (costs.recomputable) stage.forward_time += Nanos(costs.forward_time);
      saved += costs.extra;
      if (reader > last_ || v == last_ || BackwardReads(graph_, v)) saved += costs.output;
      if (reader > last_) output += costs.output;
      forward += costs.output;
      forward_peak = std::max(forward_peak, forward + costs.unsaved_overhead);
      saving_overhead = std::max(saving_overhead, costs.saving_overhead);
      if (reader <= last_) freed[Index(reader - first_)] += costs.output;
      forward -= freed[Index(v - first_)];
      int64_t gradients = costs.gradient + costs.backward_overhead;
      for (const OpGraph::Input& input : graph_.inputs(v)) {
        gradients += graph_.costs(input.vertex).gradient;
      }
      backward_peak = std::max(backward_peak, gradients);
    }
    stage.output = Bytes(output);
    stage.saved = Bytes(std::max(saved, output));
    stage.forward_saving_overhead = Bytes(saving_overhead);
    stage.forward_overhead = Bytes(std::max<int64_t>(forward_peak - output, 0));
    stage.backward_overhead = Bytes(backward_peak);
    SetStoppedRecompute(&stage);
    return stage;
  }

 private:
  // A stage stops early where its last vertex does, whose output must be all of the stage's and of
  // no use to its own backward.
  void SetStoppedRecompute(Stage* stage) const {
    const OpGraph::Costs& last = graph_.costs(last_);
    const bool makes_output =
        LastReader(graph_, last_) > last_ && stage->output == Bytes(last.output);
    if (!last.stops || last.backward_needs_output || !makes_output) return;
    int64_t overhead = graph_.stopped(last_).overhead;
    for (int v = first_; v < last_; ++v) {
      overhead = std::max(overhead, graph_.costs(v).saving_overhead);
    }
    stage->recompute_saving_time =
        stage->forward_time - Nanos(last.forward_time - graph_.stopped(last_).time);
    stage->recompute_saving_overhead = Bytes(overhead);
  }

  const OpGraph& graph_;
  const int first_;
  const int last_;
};

}  // namespace

std::vector<int> ChooseCuts(const OpGraph& graph, int stages) {
  const std::vector<int64_t> crossing = CrossingBytes(graph);
  int64_t total = 0;
  for (int v = 0; v < graph.size(); ++v) total += graph.costs(v).output + graph.costs(v).extra + 1;
  std::vector<int> cuts;
  int64_t bytes = 0;
  int best = -1;
  int64_t window = 1;  // the one that v is in, of `stages`
  for (int v = 0; v + 1 < graph.size(); ++v) {
    bytes += graph.costs(v).output + graph.costs(v).extra + 1;
    if (best < 0 || crossing[Index(v)] < crossing[Index(best)]) best = v;
    if (bytes <
        static_cast<int64_t>(static_cast<double>(total) * static_cast<double>(window) / stages)) {
      continue;
    }
    cuts.push_back(best);
    best = -1;
    while (window < stages && bytes >= static_cast<int64_t>(static_cast<double>(total) *
                                                            static_cast<double>(window) / stages)) {
      ++window;
    }
  }
  cuts.push_back(graph.size() - 1);
  return cuts;
}

absl::StatusOr<Chain> ChainOfCuts(const OpGraph& graph, const std::vector<int>& cuts,
                                  Crossing crossing) {
  ChainSpec spec;
  std::vector<int> crosses;  // vertices made before the stage that are read after it
  int first = 0;
  for (const int last : cuts) {
    Stage stage = StageCosts(graph, first, last).Derive();
    const auto ends = [&](int v) { return LastReader(graph, v) <= last; };
    crosses.erase(std::remove_if(crosses.begin(), crosses.end(), ends), crosses.end());
    int64_t old_bytes = 0, gradients = 0;
    for (const int v : crosses) {
      old_bytes += graph.costs(v).output;
      gradients += graph.costs(v).gradient;
    }
    for (int v = first; v <= last; ++v) {
      if (LastReader(graph, v) <= last) continue;
      crosses.push_back(v);
      gradients += graph.costs(v).gradient;
    }
    if (crossing == Crossing::kOfEveryStage) {
      stage.output += Bytes(old_bytes);
      stage.saved += Bytes(old_bytes);
    }
    stage.output_gradient = Bytes(gradients);
    spec.stages.push_back(std::move(stage));
    first = last + 1;
  }
  return Chain::Create(std::move(spec));
}

std::vector<std::vector<int>> StagesOfCuts(const std::vector<int>& cuts) {
  std::vector<std::vector<int>> stages;
  int first = 0;
  for (const int last : cuts) {
    std::vector<int>& stage = stages.emplace_back();
    for (; first <= last; ++first) stage.push_back(first);
  }
  return stages;
}

ComputeOrder ExpandStages(const Schedule& schedule, const std::vector<std::vector<int>>& stages,
                          const std::vector<bool>& recomputable) {
  const int size = static_cast<int>(recomputable.size());
  std::vector<bool> in_stage(recomputable.size(), false);
  std::vector<bool> ran(recomputable.size(), false);
  for (const std::vector<int>& stage : stages) {
    for (const int v : stage) in_stage[Index(v)] = true;
  }
  ComputeOrder order;
  for (int v = 0; v < size; ++v) {
    if (!in_stage[Index(v)]) order.push_back({v, false});
  }
  for (const Instruction& i : schedule) {
    const bool backward = i.op == Op::kBackward;
    if (i.stage < 1 || i.stage > static_cast<int>(stages.size())) continue;
    if (!backward && !IsForward(i.op)) continue;
    const std::vector<int>& stage = stages[Index(i.stage - 1)];
    if (backward) {
      for (size_t k = stage.size(); k-- > 0;) order.push_back({stage[k], true});
    } else {
      for (const int v : stage) {
        if (recomputable[Index(v)] || !ran[Index(v)]) order.push_back({v, false});
        ran[Index(v)] = true;
      }
    }
  }
  for (int v = size; v-- > 0;) {
    if (!in_stage[Index(v)]) order.push_back({v, true});
  }
  return order;
}

namespace {

class OutputByOutput {
 public:
  explicit OutputByOutput(const OpGraph& graph)
      : graph_(graph), ran_(Index(graph.size()), false), waits_for_(Index(graph.size()), 0) {
    for (int v = 0; v < graph.size(); ++v) {
      waits_for_[Index(v)] = static_cast<int>(graph.readers(v).size());
      ordered_before_.push_back(last_ordered_);
      if (graph.costs(v).ordered) last_ordered_ = v;
    }
  }

  ComputeOrder Run(bool last_first) {
    for (int i = 0; i < graph_.size(); ++i) {
      const int v = last_first ? graph_.size() - 1 - i : i;
      if (!graph_.readers(v).empty()) continue;
      RunForward(v);
      RunBackward(v);
    }
    return std::move(order_);
  }

 private:
  void RunForward(int output) {
    std::vector<int> needed;
    const auto need = [&](int u) {
      if (u < 0 || ran_[Index(u)]) return;
      ran_[Index(u)] = true;
      needed.push_back(u);
    };
    need(output);
    for (size_t i = 0; i < needed.size(); ++i) {
      const int v = needed[i];
      for (const OpGraph::Input& input : graph_.inputs(v)) need(input.vertex);
      if (graph_.costs(v).ordered) need(ordered_before_[Index(v)]);
    }
    std::sort(needed.begin(), needed.end());
    for (const int v : needed) order_.push_back({v, false});
  }

  // Of what can run, always the last vertex. A vertex that has not run forward waits: its readers'
  // backwards have not run either.
  void RunBackward(int output) {
    std::priority_queue<int> ready;
    ready.push(output);
    while (!ready.empty()) {
      const int v = ready.top();
      ready.pop();
      order_.push_back({v, true});
      for (const OpGraph::Input& input : graph_.inputs(v)) {
        if (--waits_for_[Index(input.vertex)] == 0) ready.push(input.vertex);
      }
    }
  }

  const OpGraph& graph_;
  std::vector<bool> ran_;
  std::vector<int> waits_for_;       // readers that have not run backward
  std::vector<int> ordered_before_;  // the vertex before that keeps its order; -1 if none
  int last_ordered_ = -1;
  ComputeOrder order_;
};

// Checkpoints and segments in an order in which each comes after what it reads; each with its
// vertices, rising.
std::vector<std::vector<int>> QuotientOrder(const OpGraph& graph,
                                            const std::vector<int>& segment_of) {
  std::vector<int> node_of(Index(graph.size()), -1), node_of_segment;
  std::vector<std::vector<int>> nodes;
  for (int v = 0; v < graph.size(); ++v) {
    const int segment = segment_of[Index(v)];
    if (segment >= static_cast<int>(node_of_segment.size())) {
      node_of_segment.resize(Index(segment) + 1, -1);
    }
    int node = segment < 0 ? -1 : node_of_segment[Index(segment)];
    if (node < 0) {
      node = static_cast<int>(nodes.size());
      nodes.emplace_back();
    }
    if (segment >= 0) node_of_segment[Index(segment)] = node;
    node_of[Index(v)] = node;
    nodes[Index(node)].push_back(v);
  }
  std::vector<int> waits_for(nodes.size(), 0);
  for (int v = 0; v < graph.size(); ++v) {
    for (const int reader : graph.readers(v)) {
      if (node_of[Index(v)] != node_of[Index(reader)]) ++waits_for[Index(node_of[Index(reader)])];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (waits_for[n] == 0) ready.push(static_cast<int>(n));
  }
  std::vector<std::vector<int>> order;
  while (!ready.empty()) {
    const int node = ready.top();
    ready.pop();
    for (const int v : nodes[Index(node)]) {
      for (const int reader : graph.readers(v)) {
        const int to = node_of[Index(reader)];
        if (to != node && --waits_for[Index(to)] == 0) ready.push(to);
      }
    }
    order.push_back(std::move(nodes[Index(node)]));
  }
  return order;
}

}  // namespace

ComputeOrder OutputByOutputOrder(const OpGraph& graph, bool last_first) {
  return OutputByOutput(graph).Run(last_first);
}

ComputeOrder CheckpointOrder(const OpGraph& graph, const std::vector<int>& segment_of,
                             bool last_stays) {
  const std::vector<std::vector<int>> parts = QuotientOrder(graph, segment_of);
  std::vector<const std::vector<int>*> vertices_of;  // of each segment
  int last = -1;
  for (const std::vector<int>& part : parts) {
    const int segment = segment_of[Index(part.front())];
    if (segment < 0) continue;
    last = segment;
    if (vertices_of.size() <= Index(segment)) vertices_of.resize(Index(segment) + 1, nullptr);
    vertices_of[Index(segment)] = &part;
  }
  ComputeOrder order;
  for (int v = 0; v < graph.size(); ++v) order.push_back({v, false});
  std::vector<bool> again(vertices_of.size(), false);
  if (last_stays && last >= 0) again[Index(last)] = true;
  const auto run_again = [&](int segment) {
    if (segment < 0 || again[Index(segment)]) return;
    again[Index(segment)] = true;
    for (const int v : *vertices_of[Index(segment)]) {
      if (graph.costs(v).recomputable) order.push_back({v, false});
    }
  };
  for (size_t p = parts.size(); p-- > 0;) {
    const std::vector<int>& part = parts[p];
    run_again(segment_of[Index(part.front())]);
    for (size_t k = part.size(); k-- > 0;) {
      for (const OpGraph::Input& input : graph.inputs(part[k])) {
        if (input.backward_needs) run_again(segment_of[Index(input.vertex)]);
      }
      order.push_back({part[k], true});
    }
  }
  return order;
}

}  // namespace stowage
