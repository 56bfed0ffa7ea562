#include "tests/solvers/naive_graph_replay.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/solvers/naive_world.h"

namespace stowage::testing {
namespace {

// A tensor holds the history of what was done to its bytes: its owner's forward, then those in
// place. So a version is a list of positions.
using History = std::vector<int>;

std::string Tensor(int p) { return "tensor" + std::to_string(p); }
std::string Extras(int p) { return "extras" + std::to_string(p); }
std::string Ran(int p) { return "ran" + std::to_string(p); }
std::string Gradient(int p) { return "gradient" + std::to_string(p); }

class NaiveGraph final : public NaiveWorld {
 public:
  NaiveGraph(const Graph& graph, const Schedule& schedule, const TransferModel* transfers)
      : NaiveWorld(schedule, transfers), graph_(graph) {}

 private:
  bool Done() const override { return static_cast<int>(backwards_.size()) == graph_.size(); }

  std::string NameOf(const Instruction& i) const override {
    return i.tensor == TensorKind::kSaved ? Extras(i.stage - 1) : Tensor(i.stage - 1);
  }

  bool Exists(const Instruction& i) const override {
    return i.stage >= 1 && i.stage <= graph_.size();
  }

  bool IsCollective(const Instruction& i) const override {
    return graph_.vertex(i.stage - 1).collective;
  }

  void Touch(const Instruction& i, NameSet* reads, NameSet* writes) const override {
    const int p = i.stage - 1;
    const Vertex& v = graph_.vertex(p);
    const bool backward = i.op == Op::kBackward;
    for (const GraphInput& input : v.inputs) {
      const int u = static_cast<int>(input.vertex);
      if (!backward || input.backward_needs) reads->insert(Tensor(graph_.storage(u)));
      if (!backward) reads->insert(Ran(u));
      if (backward) writes->insert(Gradient(graph_.storage(u)));
    }
    if (i.op != Op::kForwardNoSave) writes->insert(Extras(p));
    if (backward) {
      writes->insert(Gradient(graph_.storage(p)));
      reads->insert(Ran(p));
      if (v.backward_needs_output) reads->insert(Tensor(graph_.storage(p)));
      return;
    }
    if (ran_.count(p) == 0) writes->insert(Ran(p));
    const bool renews = v.alias == AliasKind::kNone && Has(Tensor(p));
    if (v.alias != AliasKind::kView && !renews) writes->insert(Tensor(graph_.storage(p)));
    if (renews) reads->insert(Tensor(p));
  }

  bool Execute(const Instruction& i) override {
    const int p = i.stage - 1;
    if (i.op == Op::kBackward) return RunBackward(p);
    if (i.op != Op::kForwardSave && i.op != Op::kForwardNoSave) return false;
    return Forward(p, i.op == Op::kForwardSave);
  }

  // What the program has done to the bytes of u's storage when it is about to run `reader`.
  History Expected(int u, int reader) const {
    History history = {graph_.storage(u)};
    for (int p = 0; p < reader; ++p) {
      const bool over = graph_.vertex(p).alias == AliasKind::kInPlace;
      if (over && graph_.storage(p) == graph_.storage(u)) history.push_back(p);
    }
    return history;
  }

  bool HasVersion(int u, int reader) const {
    const int storage = graph_.storage(u);
    return Has(Tensor(storage)) && histories_.at(storage) == Expected(u, reader) &&
           ran_.count(u) > 0;
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

  bool Forward(int p, bool all) {
    const Vertex& v = graph_.vertex(p);
    for (const GraphInput& input : v.inputs) {
      if (!HasVersion(static_cast<int>(input.vertex), p)) return false;
    }
    const bool again = ran_.count(p) > 0;
    if (again && (v.collective || v.must_keep || v.inputs.empty())) return false;
    if (!again && !FirstRunIsInTurn(p)) return false;
    const bool owner = v.alias == AliasKind::kNone;
    const bool there = owner ? Has(Tensor(p)) : v.alias == AliasKind::kView && again;
    const bool makes_extras = all && v.extra_saved.value() > 0;
    if (there && !makes_extras) return false;
    if (makes_extras && Anywhere(Extras(p))) return false;
    if (owner && !there && Anywhere(Tensor(p))) return false;
    if (again && makes_extras && v.recompute_saving_time) {
      bool drops = false;
      if (RunsRightBeforeItsBackward(&drops) && drops) return StoppedForward(p);
    }
    const int storage = graph_.storage(p);
    if (v.alias == AliasKind::kInPlace && Leaves(Tensor(storage))) return false;

    if (makes_extras) held_[Extras(p)] = v.extra_saved.value();
    if (owner && !there) {
      held_[Tensor(p)] = v.output.value();
      histories_[p] = {p};
    }
    if (v.alias == AliasKind::kInPlace) histories_[storage].push_back(p);
    const Bytes copy = owner && there ? v.output : Bytes(0);  // of the output, where it is renewed
    Runs(v.forward_time, copy + (all ? v.forward_saving_overhead : v.forward_overhead));
    if (again) RunsAgain(v.forward_time);
    ran_.insert(p);
    return true;
  }

  // Makes the extras alone. What would drop the output finds one of no bytes.
  bool StoppedForward(int p) {
    const Vertex& v = graph_.vertex(p);
    held_[Extras(p)] = v.extra_saved.value();
    if (!Has(Tensor(p))) {
      held_[Tensor(p)] = 0;
      histories_[p] = {p};
    }
    Runs(*v.recompute_saving_time,
         v.recompute_saving_overhead.value_or(v.output + v.forward_saving_overhead));
    RunsAgain(*v.recompute_saving_time);
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

  bool RunBackward(int p) {
    const Vertex& v = graph_.vertex(p);
    if (backwards_.count(p) > 0 || ran_.count(p) == 0) return false;
    for (int q = 0; q < graph_.size(); ++q) {
      for (const GraphInput& input : graph_.vertex(q).inputs) {
        if (input.vertex == p && backwards_.count(q) == 0) return false;
      }
    }
    for (const GraphInput& input : v.inputs) {
      if (input.backward_needs && !HasVersion(static_cast<int>(input.vertex), p)) return false;
    }
    if (v.backward_needs_output && !HasVersion(p, p + 1)) return false;
    if (v.extra_saved.value() > 0 && !Has(Extras(p))) return false;
    if (Leaves(Extras(p))) return false;

    if (backwards_.empty()) {
      for (int q = 0; q < graph_.size(); ++q) {
        if (IsOutputOfTheNetwork(q)) MakeGradient(q);
      }
    }
    for (const GraphInput& input : v.inputs) {
      MakeGradient(graph_.storage(static_cast<int>(input.vertex)));
    }
    Runs(v.backward_time, v.backward_overhead);
    held_.erase(Extras(p));
    held_.erase(Gradient(p));
    backwards_.insert(p);
    return true;
  }

  void MakeGradient(int storage) {
    held_[Gradient(storage)] = graph_.vertex(storage).output_gradient.value();
  }

  const Graph& graph_;
  std::map<int, History> histories_;  // of what is held or on the host
  std::set<int> ran_, backwards_;
};

}  // namespace

NaiveResult NaiveGraphReplay(const Graph& graph, const Schedule& schedule,
                             const TransferModel* transfers) {
  return NaiveGraph(graph, schedule, transfers).Run();
}

}  // namespace stowage::testing
