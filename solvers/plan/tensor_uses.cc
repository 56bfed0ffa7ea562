#include "solvers/plan/tensor_uses.h"

#include <utility>

namespace stowage {
namespace {

class ChainUses {
 public:
  ChainUses(const Chain& chain, const Instruction& instruction, bool input_held)
      : chain_(chain), i_(instruction), input_held_(input_held) {}

  TensorUses Find() {
    const int l = i_.stage;
    switch (i_.op) {
      case Op::kForwardKeepAll:
        UseInput(/*drops=*/false);
        WriteSaved(l);
        break;
      case Op::kForwardKeepInput:
      case Op::kForwardKeepNothing:
        UseInput(/*drops=*/i_.op == Op::kForwardKeepNothing);
        Use(kPlain, l, true);
        break;
      case Op::kBackward:
        UseInput(/*drops=*/true);
        WriteSaved(l);
        // One at a time is held, and each backward takes that of the one before.
        Use(kPlain, kGradient, true);
        break;
      case Op::kReduce:
        Use(kPlain, l, true);
        WriteSaved(l);
        break;
      default:
        UseNamed();
    }
    return std::move(uses_);
  }

 private:
  // The last of a stage's parts has the output, and may be read while others come and go.
  enum Kind { kPlain, kOutputPart, kOtherParts };
  static constexpr int kGradient = -1;  // the stage number in its place

  void Use(Kind kind, int l, bool writes) {
    uses_.push_back({3 * static_cast<size_t>(l + 1) + static_cast<size_t>(kind), writes});
  }

  void WriteSaved(int l) {
    Use(kOutputPart, l, true);
    Use(kOtherParts, l, true);
  }

  void UseInput(bool drops) {
    input_held_ ? Use(kPlain, i_.stage - 1, drops) : Use(kOutputPart, i_.stage - 1, false);
  }

  // Of a discard or a transfer.
  void UseNamed() {
    const bool writes = i_.op != Op::kOffloadStart;
    if (i_.tensor == TensorKind::kActivation) return Use(kPlain, i_.stage, writes);
    const int output_part = i_.stage == 0 ? 0 : chain_.stage(i_.stage).parts();
    if (i_.part == 0 || i_.part == output_part) Use(kOutputPart, i_.stage, writes);
    if (i_.part == 0 || i_.part != output_part) Use(kOtherParts, i_.stage, writes);
  }

  const Chain& chain_;
  const Instruction& i_;
  const bool input_held_;
  TensorUses uses_;
};

class GraphUses {
 public:
  GraphUses(const Graph& graph, const Instruction& instruction, bool has_run, bool output_held)
      : graph_(graph),
        i_(instruction),
        p_(instruction.stage - 1),
        has_run_(has_run),
        output_held_(output_held) {}

  TensorUses Find() {
    if (IsForward(i_.op)) {
      Forward();
    } else if (i_.op == Op::kBackward) {
      Backward();
    } else {
      Use(i_.tensor == TensorKind::kSaved ? kExtras : kTensor, p_, i_.op != Op::kOffloadStart);
    }
    return std::move(uses_);
  }

 private:
  // kRun is that the forward has run: a view has no other bytes than those that it reads.
  enum Kind { kTensor, kRun, kExtras, kGradient };

  void Use(Kind kind, int position, bool writes) {
    uses_.push_back({4 * static_cast<size_t>(position) + static_cast<size_t>(kind), writes});
  }

  void ReadOutput(int position) {
    Use(kTensor, graph_.storage(position), false);
    Use(kRun, position, false);
  }

  void Forward() {
    const Vertex& v = graph_.vertex(p_);
    for (const GraphInput& input : v.inputs) ReadOutput(static_cast<int>(input.vertex));
    if (!has_run_) Use(kRun, p_, true);
    if (i_.op == Op::kForwardKeepAll) Use(kExtras, p_, true);
    if (v.alias == AliasKind::kInPlace) Use(kTensor, graph_.storage(p_), true);
    if (v.alias == AliasKind::kNone) Use(kTensor, p_, !output_held_);
  }

  void Backward() {
    const Vertex& v = graph_.vertex(p_);
    Use(kRun, p_, false);
    Use(kExtras, p_, true);
    if (v.backward_needs_output) ReadOutput(p_);
    Use(kGradient, graph_.storage(p_), true);
    for (const GraphInput& input : v.inputs) {
      const int position = static_cast<int>(input.vertex);
      if (input.backward_needs) ReadOutput(position);
      Use(kGradient, graph_.storage(position), true);
    }
  }

  const Graph& graph_;
  const Instruction& i_;
  const int p_;
  const bool has_run_;
  const bool output_held_;
  TensorUses uses_;
};

}  // namespace

TensorUses UsesOf(const Chain& chain, const Instruction& instruction, bool input_held) {
  if (instruction.stage < 0 || instruction.stage > chain.length() + 1) return {};
  return ChainUses(chain, instruction, input_held).Find();
}

TensorUses UsesOf(const Graph& graph, const Instruction& instruction, bool has_run,
                  bool output_held) {
  if (instruction.stage < 1 || instruction.stage > graph.size()) return {};
  return GraphUses(graph, instruction, has_run, output_held).Find();
}

}  // namespace stowage
