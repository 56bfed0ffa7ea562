#include "solvers/schedule/graph_liveness.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "solvers/model/index.h"

namespace stowage {

GraphVersions::GraphVersions(const Graph& graph) {
  std::vector<int> current;  // by owner of a storage
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    first_read_.push_back(read_.size());
    for (const GraphInput& input : v.inputs) {
      const int storage = graph.storage(static_cast<int>(input.vertex));
      read_.push_back(current[static_cast<size_t>(storage)]);
    }
    current.push_back(p);
    int& version = current[static_cast<size_t>(graph.storage(p))];
    if (v.alias == AliasKind::kInPlace) version = p;
    made_.push_back(version);
  }
}

std::vector<bool> SeedStorages(const Graph& graph) {
  std::vector<bool> seeds;
  for (int p = 0; p < graph.size(); ++p) {
    seeds.push_back(graph.storage(p) == p);
    for (const GraphInput& input : graph.vertex(p).inputs) {
      const int storage = graph.storage(static_cast<int>(input.vertex));
      if (storage != graph.storage(p)) seeds[static_cast<size_t>(storage)] = false;
    }
  }
  return seeds;
}

namespace {

constexpr int kUnused = -1;

// Goes through the order from its end, and knows what is used later.
class ReverseSweep {
 public:
  ReverseSweep(const Graph& graph, const Schedule& compute)
      : graph_(graph),
        versions_(graph),
        compute_(compute),
        used_(Index(graph.size()), kUnused),
        uses_extras_(used_.size(), false) {}

  Schedule Run() {
    const std::vector<bool> repeats = FindRepeats();
    for (int p = 0; p < graph_.size(); ++p) {
      // Held when the step ends: used after all of it, and not dropped.
      if (graph_.vertex(p).result) used_[Index(graph_.storage(p))] = versions_.made(p);
    }
    for (size_t k = compute_.size(); k-- > 0;) {
      const Instruction& i = compute_[k];
      if (i.op == Op::kDiscard) continue;
      if (!IsCompute(i)) {
        backwards_.push_back(i);  // the evaluator's to refuse
      } else if (i.op == Op::kBackward) {
        AddBackward(i);
      } else if (!repeats[k] || IsUseful(i)) {
        AddForward(i);
      }
    }
    std::reverse(backwards_.begin(), backwards_.end());
    return std::move(backwards_);
  }

 private:
  bool IsCompute(const Instruction& i) const {
    return i.stage >= 1 && i.stage <= graph_.size() &&
           (i.op == Op::kForwardSave || i.op == Op::kForwardNoSave || i.op == Op::kBackward);
  }

  std::vector<bool> FindRepeats() const {
    std::vector<bool> repeats(compute_.size(), false);
    std::vector<bool> ran(used_.size(), false);
    for (size_t k = 0; k < compute_.size(); ++k) {
      const Instruction& i = compute_[k];
      if (!IsCompute(i) || i.op == Op::kBackward) continue;
      repeats[k] = ran[Index(i.stage - 1)];
      ran[Index(i.stage - 1)] = true;
    }
    return repeats;
  }

  // Whether what a repeated forward makes is used later.
  bool IsUseful(const Instruction& i) const {
    const int p = i.stage - 1;
    if (i.op == Op::kForwardSave && uses_extras_[Index(p)]) return true;
    return graph_.vertex(p).alias != AliasKind::kView && used_[Index(graph_.storage(p))] == p;
  }

  // The storage of `position` is used now in this version, and dropped after the last use.
  void Use(int position, int version) {
    const int storage = graph_.storage(position);
    int& used = used_[Index(storage)];
    if (used == kUnused) backwards_.push_back(Discard(TensorKind::kActivation, storage + 1));
    used = version;
  }

  void UseInputs(int p, bool backward) {
    const std::vector<GraphInput>& inputs = graph_.vertex(p).inputs;
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (backward && !inputs[k].backward_needs) continue;
      Use(static_cast<int>(inputs[k].vertex), versions_.read(p, k));
    }
  }

  void AddBackward(const Instruction& i) {
    const int p = i.stage - 1;
    const Vertex& v = graph_.vertex(p);
    uses_extras_[Index(p)] = v.extra_saved > Bytes(0);
    UseInputs(p, true);
    if (v.backward_needs_output) Use(p, versions_.made(p));
    backwards_.push_back(OnCompute(i));
  }

  static Instruction OnCompute(Instruction i) {
    i.stream = Stream::kCompute;
    return i;
  }

  void AddForward(const Instruction& i) {
    const int p = i.stage - 1;
    Instruction forward = OnCompute(i);
    if (!uses_extras_[Index(p)]) {
      forward.op = WithoutExtras(p);
    } else if (i.op == Op::kForwardSave) {
      uses_extras_[Index(p)] = false;
    }
    if (graph_.storage(p) == p) {
      // An output that is used as a later vertex left it has been held since before.
      int& used = used_[Index(p)];
      if (used == kUnused) backwards_.push_back(Discard(TensorKind::kActivation, p + 1));
      if (used == p) used = kUnused;
    }
    UseInputs(p, false);
    backwards_.push_back(forward);
  }

  // How to run a forward whose extras nothing uses.
  Op WithoutExtras(int p) {
    const Vertex& v = graph_.vertex(p);
    if (v.forward_overhead <= v.extra_saved + v.forward_saving_overhead) {
      return Op::kForwardNoSave;
    }
    if (v.extra_saved > Bytes(0)) backwards_.push_back(Discard(TensorKind::kSaved, p + 1));
    return Op::kForwardSave;
  }

  const Graph& graph_;
  const GraphVersions versions_;
  const Schedule& compute_;
  std::vector<int> used_;  // the version of the next use, by owner of the storage
  std::vector<bool> uses_extras_;
  Schedule backwards_;  // the result from its end
};

}  // namespace

Schedule WithDiscards(const Graph& graph, const Schedule& compute) {
  return ReverseSweep(graph, compute).Run();
}

}  // namespace stowage
