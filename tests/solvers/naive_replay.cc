#include "tests/solvers/naive_replay.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace stowage::testing {
namespace {

using Tensors = std::map<std::string, int64_t>;

std::string Plain(int l) { return "a" + std::to_string(l); }
std::string Saved(int l) { return "saved" + std::to_string(l); }
std::string Gradient(int l) { return "delta" + std::to_string(l); }

int64_t Sum(const Tensors& tensors) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : tensors) sum += bytes;
  return sum;
}

bool HasInput(const Tensors& t, int l) { return t.count(Plain(l - 1)) + t.count(Saved(l - 1)) > 0; }

}  // namespace

NaiveResult NaiveReplay(const Chain& chain, const Schedule& schedule) {
  const int loss = chain.length() + 1;
  Tensors held = {{Plain(0), chain.spec().input.value()},
                  {Gradient(loss), chain.gradient(loss).value()}};
  std::set<int> ran, backwards;
  NaiveResult result;
  result.peak = Sum(held);
  for (const Instruction& i : schedule) {
    const int l = i.stage;
    if (l < 0 || l > loss || i.stream != Stream::kCompute) return result;
    if (l == 0 && !(i.op == Op::kDiscard && i.tensor == TensorKind::kActivation)) return result;
    const Stage& stage = chain.stage(std::max(l, 1));
    if (IsForward(i.op)) {
      const bool all = i.op == Op::kForwardKeepAll;
      const bool drop = i.op == Op::kForwardKeepNothing;
      const std::string made = all ? Saved(l) : Plain(l);
      if (!HasInput(held, l) || (drop && held.count(Plain(l - 1)) == 0) || held.count(made) > 0)
        return result;
      if (ran.count(l) > 0) {
        if (stage.collective || stage.must_keep) return result;
        result.recompute_time += stage.forward_time.value();
        result.recomputed_forwards += 1;
      }
      ran.insert(l);
      held[made] = all ? stage.saved.value() : stage.output.value();
      const Bytes overhead = all ? stage.forward_saving_overhead : stage.forward_overhead;
      result.peak = std::max(result.peak, Sum(held) + overhead.value());
      if (drop) held.erase(Plain(l - 1));
      result.makespan += stage.forward_time.value();
    } else if (i.op == Op::kBackward) {
      if (held.count(Gradient(l)) == 0 || held.count(Saved(l)) == 0 || !HasInput(held, l))
        return result;
      result.peak = std::max(result.peak, Sum(held) + stage.backward_overhead.value());
      held.erase(Gradient(l));
      held.erase(Saved(l));
      held.erase(Plain(l - 1));
      held[Gradient(l - 1)] = chain.gradient(l - 1).value();
      backwards.insert(l);
      result.makespan += stage.backward_time.value();
    } else if (i.op == Op::kDiscard) {
      if (held.erase(i.tensor == TensorKind::kSaved ? Saved(l) : Plain(l)) == 0) return result;
    } else if (i.op == Op::kReduce) {
      if (held.count(Plain(l)) > 0 || held.erase(Saved(l)) == 0) return result;
      held[Plain(l)] = stage.output.value();
    } else {
      return result;
    }
    result.peak = std::max(result.peak, Sum(held));
  }
  result.valid = static_cast<int>(backwards.size()) == loss;
  return result;
}

}  // namespace stowage::testing
