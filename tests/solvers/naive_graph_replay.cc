#include "tests/solvers/naive_graph_replay.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace stowage::testing {
namespace {

// A tensor holds the history of what was done to its bytes: its owner's forward, then those in
// place. So a version is a list of positions.
using History = std::vector<int>;

class NaiveGraph {
 public:
  explicit NaiveGraph(const Graph& graph) : graph_(graph) {}

  bool Step(const Instruction& i, NaiveResult* result) {
    const int p = i.stage - 1;
    if (p < 0 || p >= graph_.size() || i.stream != Stream::kCompute) return false;
    if (i.op == Op::kDiscard) {
      const bool saved = i.tensor == TensorKind::kSaved;
      return (saved                    ? extras_.erase(p)
              : graph_.storage(p) == p ? tensors_.erase(p)
                                       : size_t{0}) > 0;
    }
    if (i.op == Op::kBackward) return Backward(p, result);
    if (i.op != Op::kForwardKeepAll && i.op != Op::kForwardKeepInput) return false;
    return Forward(p, i.op == Op::kForwardKeepAll, result);
  }

  int64_t Held() const {
    int64_t sum = 0;
    for (const auto& [p, history] : tensors_) sum += graph_.vertex(p).output.value();
    for (const int p : extras_) sum += graph_.vertex(p).extra_saved.value();
    for (const int p : gradients_) sum += graph_.vertex(p).output_gradient.value();
    return sum;
  }

  bool Done() const { return static_cast<int>(backwards_.size()) == graph_.size(); }

 private:
  // What the program has done to the bytes of u's storage when it is about to run `reader`.
  History Expected(int u, int reader) const {
    History history = {graph_.storage(u)};
    for (int p = 0; p < reader; ++p) {
      const bool over = graph_.vertex(p).alias == AliasKind::kInPlace;
      if (over && graph_.storage(p) == graph_.storage(u)) history.push_back(p);
    }
    return history;
  }

  bool Has(int u, int reader) const {
    const auto found = tensors_.find(graph_.storage(u));
    return found != tensors_.end() && found->second == Expected(u, reader) && ran_.count(u) > 0;
  }

  bool FirstRunIsInTurn(int p) const {
    const auto ordered = [this](int q) {
      const Vertex& v = graph_.vertex(q);
      return v.random || v.stateful || v.collective;
    };
    if (!ordered(p)) return true;
    for (int q = 0; q < p; ++q) {
      if (ordered(q) && ran_.count(q) == 0) return false;
    }
    return true;
  }

  bool Forward(int p, bool all, NaiveResult* result) {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) {
      if (!Has(static_cast<int>(input.vertex), p)) return false;
    }
    const bool again = ran_.count(p) > 0;
    if (again && (v.collective || v.must_keep || v.inputs.empty())) return false;
    if (!again && !FirstRunIsInTurn(p)) return false;
    const bool owner = v.alias == AliasKind::kNone;
    const bool there = owner ? tensors_.count(p) > 0 : v.alias == AliasKind::kView && again;
    const bool makes_extras = all && v.extra_saved.value() > 0;
    if (there && !makes_extras) return false;
    if (makes_extras && extras_.count(p) > 0) return false;

    const Bytes overhead = all ? v.forward_saving_overhead : v.forward_overhead;
    result->peak =
        std::max(result->peak, Held() + (owner ? v.output.value() : 0) +
                                   (makes_extras ? v.extra_saved.value() : 0) + overhead.value());
    if (makes_extras) extras_.insert(p);
    if (owner && !there) tensors_[p] = {p};
    if (v.alias == AliasKind::kInPlace) tensors_[graph_.storage(p)].push_back(p);
    result->makespan += v.forward_time.value();
    if (again) {
      result->recompute_time += v.forward_time.value();
      result->recomputed_forwards += 1;
    }
    ran_.insert(p);
    return true;
  }

  bool IsOutputOfTheNetwork(int storage) const {
    for (int p = 0; p < graph_.size(); ++p) {
      for (const GraphInput& input : graph_.vertex(p).inputs) {
        const bool reads = graph_.storage(static_cast<int>(input.vertex)) == storage;
        if (reads && graph_.storage(p) != storage) return false;
      }
    }
    return graph_.storage(storage) == storage;
  }

  bool Backward(int p, NaiveResult* result) {
    const Vertex& v = graph_.vertex(p);
    if (backwards_.count(p) > 0 || ran_.count(p) == 0) return false;
    for (int q = 0; q < graph_.size(); ++q) {
      for (const GraphInput& input : graph_.vertex(q).inputs) {
        if (input.vertex == p && backwards_.count(q) == 0) return false;
      }
    }
    for (const GraphInput& input : v.inputs) {
      if (input.backward_needs && !Has(static_cast<int>(input.vertex), p)) return false;
    }
    if (v.backward_needs_output && !Has(p, p + 1)) return false;
    if (v.extra_saved.value() > 0 && extras_.count(p) == 0) return false;

    if (backwards_.empty()) {
      for (int q = 0; q < graph_.size(); ++q) {
        if (IsOutputOfTheNetwork(q)) gradients_.insert(q);
      }
    }
    for (const GraphInput& input : v.inputs) {
      gradients_.insert(graph_.storage(static_cast<int>(input.vertex)));
    }
    result->peak = std::max(result->peak, Held() + v.backward_overhead.value());
    extras_.erase(p);
    gradients_.erase(p);
    backwards_.insert(p);
    result->makespan += v.backward_time.value();
    return true;
  }

  const Graph& graph_;
  std::map<int, History> tensors_;
  std::set<int> extras_, gradients_, ran_, backwards_;
};

}  // namespace

NaiveResult NaiveGraphReplay(const Graph& graph, const Schedule& schedule) {
  NaiveGraph state(graph);
  NaiveResult result;
  for (const Instruction& i : schedule) {
    if (!state.Step(i, &result)) return result;
    result.peak = std::max(result.peak, state.Held());
  }
  result.valid = state.Done();
  return result;
}

}  // namespace stowage::testing
