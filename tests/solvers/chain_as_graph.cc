#include "tests/solvers/chain_as_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stowage::testing {
namespace {

// Translates step by step, with an eye on what the chain holds.
class Translation {
 public:
  explicit Translation(const Chain& chain)
      : chain_(chain), plain_(static_cast<size_t>(chain.length()) + 2, false), saved_(plain_) {
    plain_[0] = true;
    schedule_.push_back(ForwardNoSave(1));
  }

  // Whether the chain holds nothing twice after it.
  bool Add(const Instruction& i) {
    const size_t l = static_cast<size_t>(i.stage);
    const bool saved = i.tensor == TensorKind::kSaved;
    if (IsForward(i.op)) {
      if (plain_[l] || saved_[l]) return false;
      const bool saving = i.op == Op::kForwardSave;
      schedule_.push_back(saving ? ForwardSave(i.stage + 1) : ForwardNoSave(i.stage + 1));
      (saving ? saved_ : plain_)[l] = true;
      if (i.op == Op::kForwardNoSaveFreeInput) DropTensor(&plain_, l - 1);
    } else if (i.op == Op::kBackward) {
      schedule_.push_back(Backward(i.stage + 1));
      DropTensor(&saved_, l);
      if (plain_[l - 1]) DropTensor(&plain_, l - 1);
    } else if (IsTransfer(i.op)) {
      AddTransfer(i);
    } else {
      if (saved && HasExtras(i.stage)) {
        schedule_.push_back(Discard(TensorKind::kSaved, i.stage + 1));
      }
      if (i.op == Op::kDropSavedKeepOutput) {
        saved_[l] = false;
        plain_[l] = true;
      } else {
        DropTensor(saved ? &saved_ : &plain_, l);
      }
    }
    return true;
  }

  Schedule Finish() {
    schedule_.push_back(Backward(1));
    return std::move(schedule_);
  }

 private:
  // What a stage saves is two tensors of the graph. On the host it counts as held here: the chain
  // may make the other kind of it anew, the graph may not.
  void AddTransfer(Instruction i) {
    const bool extras = i.tensor == TensorKind::kSaved && HasExtras(i.stage);
    i.stage += 1;
    i.tensor = TensorKind::kActivation;
    schedule_.push_back(i);
    i.tensor = TensorKind::kSaved;
    if (extras) schedule_.push_back(i);
  }

  bool HasExtras(int l) const { return chain_.stage(l).saved > chain_.stage(l).output; }

  void DropTensor(std::vector<bool>* held, size_t l) {
    (*held)[l] = false;
    schedule_.push_back(Discard(TensorKind::kActivation, static_cast<int>(l) + 1));
  }

  const Chain& chain_;
  std::vector<bool> plain_, saved_;
  Schedule schedule_;
};

}  // namespace

Chain ComparableChain(const Chain& chain, const std::function<void(Stage*)>& change) {
  ChainSpec spec = chain.spec();
  Bytes input_gradient = spec.input_gradient;
  spec.loss.output_gradient = Bytes(0);
  for (int l = 1; l <= chain.length() + 1; ++l) {
    Stage& s = l <= chain.length() ? spec.stages[static_cast<size_t>(l) - 1] : spec.loss;
    change(&s);
    // A chain drops what was saved with the output in it, which the graph would have to make.
    s.recompute_saving_time.reset();
    s.recompute_saving_overhead.reset();
    s.backward_overhead = std::max(s.backward_overhead, input_gradient);
    input_gradient = s.output_gradient;
  }
  return *Chain::Create(std::move(spec));
}

Graph ChainAsGraph(const Chain& chain) {
  GraphSpec spec;
  Vertex input;
  input.output = chain.activation(0);
  input.output_gradient = chain.gradient(0);
  spec.vertices.push_back(std::move(input));
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    Vertex v;
    v.id = v.program_order = l;
    v.inputs = {{int64_t{l} - 1, true}};
    v.output = s.output;
    v.output_gradient = s.output_gradient;
    v.extra_saved = s.saved - s.output;
    v.backward_needs_output = true;
    v.forward_time = s.forward_time;
    v.backward_time = s.backward_time;
    v.forward_saving_overhead = s.forward_saving_overhead;
    v.forward_overhead = s.forward_overhead;
    v.backward_overhead = s.backward_overhead - chain.gradient(l - 1);
    v.must_keep = !s.recomputable();
    spec.vertices.push_back(std::move(v));
  }
  return *Graph::Create(std::move(spec));
}

Schedule ScheduleAsGraph(const Chain& chain, const Schedule& schedule) {
  Translation translation(chain);
  for (const Instruction& i : schedule) {
    if (!translation.Add(i)) return {};
  }
  return translation.Finish();
}

}  // namespace stowage::testing
