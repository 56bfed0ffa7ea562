#include "tests/solvers/naive_replay.h"

#include <set>
#include <string>
#include <vector>

#include "tests/solvers/naive_world.h"

namespace stowage::testing {
namespace {

std::string Plain(int l) { return "a" + std::to_string(l); }
std::string Saved(int l) { return "saved" + std::to_string(l); }
// In maps the parts of a stage stand in their order.
std::string Part(int l, size_t part) { return Saved(l) + "." + std::to_string(100000 + part); }
std::string Gradient(int l) { return "delta" + std::to_string(l); }

class NaiveChain final : public NaiveWorld {
 public:
  NaiveChain(const Chain& chain, const Schedule& schedule, const TransferModel* transfers)
      : NaiveWorld(schedule, transfers), chain_(chain), loss_(chain.length() + 1) {
    held_ = {{Plain(0), chain.spec().input.value()},
             {Gradient(loss_), chain.gradient(loss_).value()}};
  }

 private:
  bool Done() const override { return static_cast<int>(backwards_.size()) == loss_; }

  std::string NameOf(const Instruction& i) const override {
    if (i.part != 0) return Part(i.stage, i.part);
    return i.tensor == TensorKind::kSaved ? Saved(i.stage) : Plain(i.stage);
  }

  std::vector<std::string> PiecesOf(const Instruction& i) const override {
    if (i.part != 0 || i.tensor == TensorKind::kActivation) return {NameOf(i)};
    return Names(SavedPieces(i.stage));
  }

  std::string WholeOf(const Instruction& i) const override {
    return i.part != 0 ? Saved(i.stage) : NameOf(i);
  }

  // Saved tensors as they are held: in parts where those are known, the last one with the output.
  Tensors SavedPieces(int l) const {
    if (l == 0) return {};
    const Stage& stage = chain_.stage(l);
    if (stage.saved_tensors.empty()) return {{Saved(l), stage.saved.value()}};
    Tensors pieces;
    int64_t rest = stage.saved.value();
    size_t part = 1;
    for (const Bytes bytes : stage.saved_tensors) {
      pieces[Part(l, part++)] = bytes.value();
      rest -= bytes.value();
    }
    pieces[Part(l, part)] = rest;
    return pieces;
  }

  static std::vector<std::string> Names(const Tensors& pieces) {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : pieces) names.push_back(name);
    return names;
  }

  bool HasOutput(int l) const {
    const std::vector<std::string> pieces = Names(SavedPieces(l));
    return !pieces.empty() && Has(pieces.back());
  }

  // Whether all of saved l is here, and none of it on its way.
  bool SavedHere(int l) const {
    bool here = !OnHost(Saved(l));
    for (const std::string& piece : Names(SavedPieces(l))) {
      here = here && Has(piece) && !OnHost(piece);
    }
    return here;
  }

  bool SavedAnywhere(int l) const {
    bool anywhere = OnHost(Saved(l));
    for (const std::string& piece : Names(SavedPieces(l))) anywhere = anywhere || Anywhere(piece);
    return anywhere;
  }

  bool DropSaved(int l) {
    std::vector<std::string> names = Names(SavedPieces(l));
    if (names.front() != Saved(l)) names.push_back(Saved(l));
    return Vanishes(names);
  }

  bool Discarded(const Instruction& i) override {
    return i.tensor == TensorKind::kSaved ? DropSaved(i.stage) : NaiveWorld::Discarded(i);
  }

  bool Exists(const Instruction& i) const override {
    const bool transfer = !IsForward(i.op) && i.op != Op::kBackward && i.op != Op::kDiscard &&
                          i.op != Op::kDropSavedKeepOutput;
    if (i.stage < 0 || i.stage > loss_) return false;
    const bool plain = i.tensor == TensorKind::kActivation;
    if (i.part != 0) {
      if (!transfer || plain || i.stage == 0) return false;
      const std::vector<Bytes>& tensors = chain_.stage(i.stage).saved_tensors;
      if (tensors.empty() || i.part > tensors.size() + 1) return false;
    }
    if (transfer && plain && i.stage == loss_) return false;
    return i.stage > 0 || (plain && (transfer || i.op == Op::kDiscard));
  }

  bool Execute(const Instruction& i) override {
    if (IsForward(i.op)) return Forward(i.op, i.stage);
    if (i.op == Op::kBackward) return RunBackward(i.stage);
    // A reduce.
    if (Anywhere(Plain(i.stage)) || !HasOutput(i.stage) || !DropSaved(i.stage)) return false;
    held_[Plain(i.stage)] = chain_.stage(i.stage).output.value();
    return true;
  }

  bool IsCollective(const Instruction& i) const override {
    return chain_.stage(i.stage).collective;
  }

  void Touch(const Instruction& i, NameSet* reads, NameSet* writes) const override {
    const int l = i.stage;
    if (i.op != Op::kForwardNoSave && i.op != Op::kForwardNoSaveFreeInput) {
      for (const std::string& piece : Names(SavedPieces(l))) writes->insert(piece);
    }
    if (i.op != Op::kForwardSave && i.op != Op::kBackward) writes->insert(Plain(l));
    if (i.op == Op::kDropSavedKeepOutput) return;
    if (Has(Plain(l - 1))) {
      const bool drops = i.op == Op::kForwardNoSaveFreeInput || i.op == Op::kBackward;
      (drops ? writes : reads)->insert(Plain(l - 1));
    } else if (l > 1) {
      reads->insert(Names(SavedPieces(l - 1)).back());
    }
    if (i.op == Op::kBackward) writes->insert({Gradient(l), Gradient(l - 1)});
  }

  bool HasInput(int l) const { return Has(Plain(l - 1)) || HasOutput(l - 1); }

  bool Forward(Op op, int l) {
    const Stage& stage = chain_.stage(l);
    const bool all = op == Op::kForwardSave;
    const bool drop = op == Op::kForwardNoSaveFreeInput;
    if (!HasInput(l) || (drop && !Has(Plain(l - 1)))) return false;
    if (all ? SavedAnywhere(l) : Anywhere(Plain(l))) return false;
    bool drops = false;
    if (ran_.count(l) > 0) {
      if (stage.collective || stage.must_keep) return false;
      if (all && stage.recompute_saving_time && RunsRightBeforeItsBackward(&drops)) {
        return StoppedForward(l);
      }
      RunsAgain(stage.forward_time);
    }
    ran_.insert(l);
    held_.merge(all ? SavedPieces(l) : Tensors{{Plain(l), stage.output.value()}});
    Runs(stage.forward_time, all ? stage.forward_saving_overhead : stage.forward_overhead);
    return !drop || Erase(Plain(l - 1));
  }

  // Makes what stage l saves, but not its output.
  bool StoppedForward(int l) {
    const Stage& stage = chain_.stage(l);
    Tensors made = SavedPieces(l);
    made.rbegin()->second -= stage.output.value();
    held_.merge(made);
    const Bytes as_others = stage.output + stage.forward_saving_overhead;
    RunsAgain(*stage.recompute_saving_time);
    Runs(*stage.recompute_saving_time, stage.recompute_saving_overhead.value_or(as_others));
    return true;
  }

  bool RunBackward(int l) {
    const Stage& stage = chain_.stage(l);
    if (!Has(Gradient(l)) || !SavedHere(l) || !HasInput(l)) return false;
    Runs(stage.backward_time, stage.backward_overhead);
    held_.erase(Gradient(l));
    DropSaved(l);
    if (Has(Plain(l - 1)) && !Erase(Plain(l - 1))) return false;
    held_[Gradient(l - 1)] = chain_.gradient(l - 1).value();
    backwards_.insert(l);
    return true;
  }

  const Chain& chain_;
  const int loss_;
  std::set<int> ran_, backwards_;
};

}  // namespace

NaiveResult NaiveReplay(const Chain& chain, const Schedule& schedule,
                        const TransferModel* transfers) {
  return NaiveChain(chain, schedule, transfers).Run();
}

}  // namespace stowage::testing
