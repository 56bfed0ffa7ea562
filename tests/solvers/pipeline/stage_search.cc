#include "tests/solvers/pipeline/stage_search.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stowage::testing {
namespace {

struct State {
  uint32_t plain = 1;  // a^0
  uint32_t saved = 0;
  uint32_t ran = 0;
  int fresh = -1;     // whose plain output the last forward made
  int gradient = -1;  // -1: in the forward task

  auto Key() const { return std::tie(plain, saved, ran, fresh, gradient); }
  friend bool operator<(const State& a, const State& b) { return a.Key() < b.Key(); }
};

bool Has(uint32_t set, int l) { return (set >> l & 1u) != 0; }

class Search {
 public:
  Search(const Chain& chain, bool is_last)
      : chain_(chain), is_last_(is_last), end_(chain.length() + (is_last ? 1 : 0)) {}

  std::vector<StageLabel> Run() {
    const State start;
    Visit(start, {0, 0, Memory(start), 0});
    return done_;
  }

 private:
  int64_t Memory(const State& s) const {
    int64_t sum = s.gradient >= 0 ? chain_.gradient(s.gradient).value()
                  : is_last_      ? chain_.gradient(end_).value()
                                  : 0;
    for (int l = 0; l <= end_; ++l) {
      if (Has(s.plain, l)) sum += chain_.activation(l).value();
      if (l > 0 && Has(s.saved, l)) sum += chain_.stage(l).saved.value();
    }
    return sum;
  }

  static bool Add(const StageLabel& label, std::vector<StageLabel>* labels) {
    const auto within = [](const StageLabel& a, const StageLabel& b) {
      return a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2] && a[3] <= b[3];
    };
    for (const StageLabel& other : *labels) {
      if (within(other, label)) return false;
    }
    labels->erase(std::remove_if(labels->begin(), labels->end(),
                                 [&](const StageLabel& other) { return within(label, other); }),
                  labels->end());
    labels->push_back(label);
    return true;
  }

  void Visit(const State& s, const StageLabel& label) {
    if (!Add(label, &known_[s])) return;
    if (s.gradient == 0) {
      Add(label, &done_);
      return;
    }
    const bool forward_task = s.gradient < 0;
    const int target = forward_task ? end_ : s.gradient;
    if (forward_task && (Has(s.saved, end_) || Has(s.plain, end_))) return Turn(s, label);
    for (int l = 1; l <= target; ++l) {
      if (!Has(s.plain, l - 1) && !Has(s.saved, l - 1)) continue;
      // Nothing is computed ahead of the backward that needs it.
      bool ahead = false;
      for (int k = l; k < target; ++k) ahead |= Has(s.plain, k) || Has(s.saved, k);
      if (!ahead) Forwards(s, label, l);
      if (!forward_task && l == s.gradient && Has(s.saved, l)) Backward(s, label, l);
    }
  }

  void Turn(State s, StageLabel label) {
    if (!is_last_) s.plain &= ~(1u << end_);  // it is sent
    label[1] = Memory(s);
    s.gradient = end_;
    s.fresh = -1;
    label[3] = Memory(s);
    Visit(s, label);
  }

  void Go(const State& next, StageLabel label, int64_t running, int64_t time) {
    const bool forward_task = next.gradient < 0;
    int64_t& peak = label[forward_task ? 2 : 3];
    peak = std::max({peak, running, Memory(next)});
    if (!forward_task) label[0] += time;
    Visit(next, label);
  }

  void Forwards(const State& s, const StageLabel& label, int l) {
    const Stage& stage = chain_.stage(l);
    if (Has(s.ran, l) && !stage.recomputable()) return;
    const int64_t time = stage.forward_time.value();
    State next = s;
    next.ran |= 1u << l;
    if (!Has(s.saved, l)) {
      State all = next;
      all.saved |= 1u << l;
      all.fresh = -1;
      if (l == s.gradient && Has(s.ran, l) && stage.stops()) StopEarly(s, all, label, l);
      Go(all, label, Memory(s) + (stage.saved + stage.forward_saving_overhead).value(), time);
    }
    if (Has(s.plain, l) || (is_last_ && l == end_)) return;
    next.plain |= 1u << l;
    next.fresh = l;
    const int64_t running = Memory(s) + (stage.output + stage.forward_overhead).value();
    Go(next, label, running, time);
    if (s.fresh == l - 1) {
      next.plain &= ~(1u << (l - 1));
      Go(next, label, running, time);
    }
  }

  static State AfterBackward(State s, int l) {
    s.saved &= ~(1u << l);
    s.plain &= ~(1u << (l - 1));
    s.gradient = l - 1;
    s.fresh = -1;
    return s;
  }

  // A recompute that ends at its last saved tensor, and the backward right behind it. `all`: had it gone on.
  void StopEarly(const State& s, const State& all, const StageLabel& label, int l) {
    const Stage& stage = chain_.stage(l);
    const Bytes most = std::max(stage.stopped_overhead(), stage.backward_overhead);
    Go(AfterBackward(all, l), label, Memory(s) + (stage.stopped_saved() + most).value(),
       (stage.stopped_time() + stage.backward_time).value());
  }

  void Backward(const State& s, const StageLabel& label, int l) {
    Go(AfterBackward(s, l), label, Memory(s) + chain_.stage(l).backward_overhead.value(),
       chain_.stage(l).backward_time.value());
  }

  const Chain& chain_;
  const bool is_last_;
  const int end_;
  std::map<State, std::vector<StageLabel>> known_;
  std::vector<StageLabel> done_;
};

}  // namespace

std::vector<StageLabel> SearchStage(const Chain& chain, bool is_last) {
  return Search(chain, is_last).Run();
}

}  // namespace stowage::testing
