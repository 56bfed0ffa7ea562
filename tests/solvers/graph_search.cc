#include "tests/solvers/graph_search.h"

#include <bitset>
#include <vector>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/state_search.h"

namespace stowage::testing {
namespace {

constexpr int kBits = 12;  // vertices

bool Has(uint32_t set, int p) { return (set >> p & 1u) != 0; }
uint32_t Bit(int p) { return 1u << p; }

// Bit sets over vertices.
struct HeldInGraph {
  uint32_t tensors = 0;
  uint32_t extras = 0;
  uint32_t ran = 0;
  uint32_t done = 0;    // backward
  int stopped = -1;     // the vertex whose extras are new and whose backward comes next
  bool unmade = false;  // its output, which was not made, has to be dropped before

  uint64_t Key() const {
    return tensors | uint64_t{extras} << kBits | uint64_t{ran} << (2 * kBits) |
           uint64_t{done} << (3 * kBits) | static_cast<uint64_t>(stopped + 1) << (4 * kBits) |
           uint64_t{unmade} << 60;
  }
};

class GraphRules {
 public:
  using State = HeldInGraph;
  using Step = SearchStep<State>;

  GraphRules(const Graph& graph, SumOrder sums)
      : graph_(graph), sums_(sums), readers_(static_cast<size_t>(graph.size()), 0) {
    for (int p = 0; p < graph.size(); ++p) {
      for (const GraphInput& input : graph.vertex(p).inputs) {
        readers_[static_cast<size_t>(input.vertex)] |= Bit(p);
      }
    }
  }

  State Start() const { return {}; }
  bool Done(const State& s) const { return s.done == Bit(graph_.size()) - 1; }

  int64_t Memory(const State& s) const {
    Bytes sum;
    for (int p = 0; p < graph_.size(); ++p) {
      const Vertex& v = graph_.vertex(p);
      if (Has(s.tensors, p)) sum += v.output;
      if (Has(s.extras, p)) sum += v.extra_saved;
      const uint32_t readers = readers_[static_cast<size_t>(p)];
      const bool contributed = ((readers == 0 ? ~0u : readers) & s.done) != 0;
      if (contributed && !Has(s.done, p)) sum += v.output_gradient;
    }
    return sum.value();
  }

  std::vector<Step> Steps(const State& s) const {
    std::vector<Step> steps;
    if (s.unmade) {
      State next = s;
      next.unmade = false;
      steps.push_back({next, Discard(TensorKind::kActivation, s.stopped + 1), 0, Memory(s)});
      return steps;
    }
    if (s.stopped >= 0) {
      // What it read its backward may not need.
      for (int p = 0; p < graph_.size(); ++p) {
        if (p != s.stopped) AddDrops(s, p, &steps);
      }
      if (MayRunBackward(s, s.stopped)) AddBackward(s, s.stopped, &steps);
      return steps;
    }
    for (int p = 0; p < graph_.size(); ++p) {
      AddDrops(s, p, &steps);
      // What is made of a vertex after its backward nothing can use.
      if (Has(s.done, p)) continue;
      if (MayRun(s, p)) AddForwards(s, p, &steps);
      if (MayRunBackward(s, p)) AddBackward(s, p, &steps);
    }
    return steps;
  }

 private:
  void AddDrops(const State& s, int p, std::vector<Step>* steps) const {
    State next = s;
    if (Has(s.tensors, p)) {
      next.tensors &= ~Bit(p);
      steps->push_back({next, Discard(TensorKind::kActivation, p + 1), 0, Memory(s)});
    }
    if (!Has(s.extras, p)) return;
    next = s;
    next.extras &= ~Bit(p);
    steps->push_back({next, Discard(TensorKind::kSaved, p + 1), 0, Memory(s)});
  }

  static bool InOrder(const Vertex& v) { return v.random || v.stateful || v.collective; }

  bool MayRun(const State& s, int p) const {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) {
      if (!Has(s.tensors, static_cast<int>(input.vertex))) return false;
    }
    if (Has(s.ran, p)) return !v.collective && !v.must_keep && !v.inputs.empty();
    for (int q = 0; q < p; ++q) {
      if (InOrder(v) && InOrder(graph_.vertex(q)) && !Has(s.ran, q)) return false;
    }
    return true;
  }

  void AddForwards(const State& s, int p, std::vector<Step>* steps) const {
    const Vertex& v = graph_.vertex(p);
    const int64_t running = Memory(s) + v.output.value();
    const int64_t time = v.forward_time.value();
    State next = s;
    next.ran |= Bit(p);
    next.tensors |= Bit(p);
    if (!Has(s.tensors, p)) {
      steps->push_back({next, ForwardNoSave(p + 1), time, running + v.forward_overhead.value()});
    }
    const bool has_extras = v.extra_saved > Bytes(0);
    if (v.recompute_saving_time && Has(s.ran, p) && has_extras && !Has(s.extras, p) &&
        !Has(s.tensors, p)) {
      AddStopped(s, p, steps);
    }
    if (Has(s.extras, p) || (Has(s.tensors, p) && !has_extras)) return;
    if (has_extras) next.extras |= Bit(p);
    steps->push_back({next, ForwardSave(p + 1), time,
                      running + (v.extra_saved + v.forward_saving_overhead).value()});
  }

  // Makes the extras alone: right before the backward, which does not read the output.
  void AddStopped(const State& s, int p, std::vector<Step>* steps) const {
    const Vertex& v = graph_.vertex(p);
    State next = s;
    next.extras |= Bit(p);
    next.stopped = p;
    next.unmade = true;
    const Bytes as_others = v.output + v.forward_saving_overhead;
    steps->push_back({next, ForwardSave(p + 1), v.recompute_saving_time->value(),
                      Memory(next) + v.recompute_saving_overhead.value_or(as_others).value()});
  }

  bool MayRunBackward(const State& s, int p) const {
    const Vertex& v = graph_.vertex(p);
    const uint32_t readers = readers_[static_cast<size_t>(p)];
    if (!Has(s.ran, p) || (readers & ~s.done) != 0) return false;
    if (v.extra_saved > Bytes(0) && !Has(s.extras, p)) return false;
    if (v.backward_needs_output && !Has(s.tensors, p)) return false;
    for (const GraphInput& input : v.inputs) {
      if (input.backward_needs && !Has(s.tensors, static_cast<int>(input.vertex))) return false;
    }
    return sums_ == SumOrder::kAny || LastOfReadersLeft(s, p);
  }

  // Whether no later reader of a tensor that several read has its backward still to come.
  bool LastOfReadersLeft(const State& s, int p) const {
    for (const GraphInput& input : graph_.vertex(p).inputs) {
      const uint32_t readers = readers_[static_cast<size_t>(input.vertex)];
      const bool sums = graph_.vertex(static_cast<int>(input.vertex)).output_gradient > Bytes(0) &&
                        std::bitset<kBits>(readers).count() >= 2;
      if (sums && (readers & ~s.done) >> (p + 1) != 0) return false;
    }
    return true;
  }

  void AddBackward(const State& s, int p, std::vector<Step>* steps) const {
    const Vertex& v = graph_.vertex(p);
    State next = s;
    next.extras &= ~Bit(p);
    next.done |= Bit(p);
    next.stopped = -1;
    // Everything that is there afterwards is there while it runs, and what it drops.
    const Bytes running =
        Bytes(Memory(next)) + v.extra_saved + v.output_gradient + v.backward_overhead;
    steps->push_back({next, Backward(p + 1), v.backward_time.value(), running.value()});
  }

  const Graph& graph_;
  SumOrder sums_;
  std::vector<uint32_t> readers_;
};

}  // namespace

std::optional<FoundSchedule> SearchGraphSchedules(const Graph& graph, int64_t budget,
                                                  SumOrder sums) {
  const GraphRules rules(graph, sums);
  return StateSearch<GraphRules>(rules, budget).Run();
}

int64_t LeastGraphPeak(const Graph& graph, SumOrder sums) {
  int64_t least = 0;
  int64_t enough = Evaluator(graph).Run(StoreAllSchedule(graph))->peak.value();
  while (least < enough) {
    const int64_t budget = least + (enough - least) / 2;
    if (SearchGraphSchedules(graph, budget, sums)) {
      enough = budget;
    } else {
      least = budget + 1;
    }
  }
  return enough;
}

std::map<int64_t, int64_t> GraphScheduleFrontier(const Graph& graph, SumOrder sums) {
  return SearchFrontier(GraphRules(graph, sums), LeastGraphPeak(graph, sums),
                        graph.ideal_time().value());
}

}  // namespace stowage::testing
