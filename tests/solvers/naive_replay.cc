#include "tests/solvers/naive_replay.h"

#include <set>
#include <string>

#include "tests/solvers/naive_world.h"

namespace stowage::testing {
namespace {

std::string Plain(int l) { return "a" + std::to_string(l); }
std::string Saved(int l) { return "saved" + std::to_string(l); }
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
    return i.tensor == TensorKind::kSaved ? Saved(i.stage) : Plain(i.stage);
  }

  bool Exists(const Instruction& i) const override {
    const bool transfer =
        !IsForward(i.op) && i.op != Op::kBackward && i.op != Op::kDiscard && i.op != Op::kReduce;
    if (i.stage < 0 || i.stage > loss_) return false;
    const bool plain = i.tensor == TensorKind::kActivation;
    if (transfer && plain && i.stage == loss_) return false;
    return i.stage > 0 || (plain && (transfer || i.op == Op::kDiscard));
  }

  bool Execute(const Instruction& i) override {
    if (IsForward(i.op)) return Forward(i.op, i.stage);
    if (i.op == Op::kBackward) return RunBackward(i.stage);
    // A reduce.
    if (Anywhere(Plain(i.stage)) || !Erase(Saved(i.stage))) return false;
    held_[Plain(i.stage)] = chain_.stage(i.stage).output.value();
    return true;
  }

  bool HasInput(int l) const { return Has(Plain(l - 1)) || Has(Saved(l - 1)); }

  bool Forward(Op op, int l) {
    const Stage& stage = chain_.stage(l);
    const bool all = op == Op::kForwardKeepAll;
    const bool drop = op == Op::kForwardKeepNothing;
    const std::string made = all ? Saved(l) : Plain(l);
    if (!HasInput(l) || (drop && !Has(Plain(l - 1))) || Anywhere(made)) return false;
    if (ran_.count(l) > 0) {
      if (stage.collective || stage.must_keep) return false;
      RunsAgain(stage.forward_time);
    }
    ran_.insert(l);
    held_[made] = (all ? stage.saved : stage.output).value();
    Runs(stage.forward_time, all ? stage.forward_saving_overhead : stage.forward_overhead);
    return !drop || Erase(Plain(l - 1));
  }

  bool RunBackward(int l) {
    const Stage& stage = chain_.stage(l);
    if (!Has(Gradient(l)) || !Has(Saved(l)) || !HasInput(l)) return false;
    Runs(stage.backward_time, stage.backward_overhead);
    held_.erase(Gradient(l));
    if (!Erase(Saved(l))) return false;
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
