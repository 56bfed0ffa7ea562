#include "solvers/joint/least_on_host.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace stowage {
namespace {

struct Tensor {
  TensorKind kind;
  int stage;

  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.kind == b.kind && a.stage == b.stage;
  }
};

Tensor InputOf(const Chain& chain, int l) {
  const bool once = l > 1 && !chain.stage(l - 1).recomputable();
  return {once ? TensorKind::kSaved : TensorKind::kActivation, l - 1};
}

Bytes InputBytes(const Chain& chain, int l) {
  const Tensor input = InputOf(chain, l);
  return input.kind == TensorKind::kSaved ? chain.stage(input.stage).saved
                                          : chain.activation(input.stage);
}

// What each of the forwards of a stage needs beside a gradient.
Bytes SavingNeed(const Chain& chain, int l) {
  return InputBytes(chain, l) + chain.stage(l).saved + chain.stage(l).forward_saving_overhead;
}
Bytes PlainNeed(const Chain& chain, int l) {
  return InputBytes(chain, l) + chain.stage(l).output + chain.stage(l).forward_overhead;
}

// The loss runs right before its backward.
bool RunsOnce(const Chain& chain, int l) {
  return l > chain.length() || !chain.stage(l).recomputable();
}

// The least gradient of stages l.. at index l, and the first stage that has it.
struct LeastGradient {
  Bytes bytes;
  int stage;
};

std::vector<LeastGradient> LeastGradients(const Chain& chain) {
  const int last = chain.length() + 1;
  std::vector<LeastGradient> least(static_cast<size_t>(last) + 1);
  least.back() = {chain.gradient(last), last};
  for (int l = last - 1; l >= 1; --l) {
    const LeastGradient& after = least[static_cast<size_t>(l) + 1];
    least[static_cast<size_t>(l)] =
        chain.gradient(l) <= after.bytes ? LeastGradient{chain.gradient(l), l} : after;
  }
  return least;
}

// Keeps track of what is where.
class Mover {
 public:
  explicit Mover(const Chain& chain) : held_({{TensorKind::kActivation, 0}}), chain_(chain) {}

  // Of all tensors the device has these, and the next instruction.
  void Hold(const std::vector<Tensor>& wanted) {
    for (size_t i = 0; i < held_.size();) {
      if (std::find(wanted.begin(), wanted.end(), held_[i]) != wanted.end()) {
        ++i;
        continue;
      }
      Append(OffloadStart(held_[i].kind, held_[i].stage));
      Append(OffloadWait(held_[i].kind, held_[i].stage));
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const Tensor& tensor : wanted) {
      if (std::find(held_.begin(), held_.end(), tensor) != held_.end()) continue;
      Append(PrefetchStart(tensor.kind, tensor.stage));
      Append(PrefetchWait(tensor.kind, tensor.stage));
      held_.push_back(tensor);
    }
  }

  void Append(const Instruction& instruction) { schedule_.push_back(instruction); }
  void Make(TensorKind kind, int stage) { held_.push_back({kind, stage}); }
  void Drop(const Tensor& tensor) {
    held_.erase(std::remove(held_.begin(), held_.end(), tensor), held_.end());
  }

  void SaveStage(int l) {
    Hold({InputOf(chain_, l)});
    Append(ForwardKeepAll(l));
    Make(TensorKind::kSaved, l);
  }

  // The plain output, by whichever forward needs less.
  void RunStage(int l) {
    Hold({InputOf(chain_, l)});
    if (PlainNeed(chain_, l) <= SavingNeed(chain_, l)) {
      Append(ForwardKeepInput(l));
    } else {
      Append(ForwardKeepAll(l));
      Append(Reduce(l));
    }
    Make(TensorKind::kActivation, l);
  }

  void RunBackward(int l) {
    const Tensor input = InputOf(chain_, l), saved = {TensorKind::kSaved, l};
    Hold({input, saved});
    Append(Backward(l));
    Drop(saved);
    if (input.kind == TensorKind::kActivation) Drop(input);
  }

  Schedule Take() { return std::move(schedule_); }

 private:
  std::vector<Tensor> held_;
  const Chain& chain_;
  Schedule schedule_;
};

}  // namespace

Bytes LeastMemoryOnHost(const Chain& chain) {
  const int last = chain.length() + 1;
  const Bytes seed = chain.gradient(last);
  const std::vector<LeastGradient> gradients = LeastGradients(chain);
  Bytes least = chain.gradient(0);
  for (int l = 1; l <= last; ++l) {
    const Bytes saving = SavingNeed(chain, l);
    const Bytes first =
        (RunsOnce(chain, l) ? saving : std::min(saving, PlainNeed(chain, l))) + seed;
    const Bytes again = saving + gradients[static_cast<size_t>(l)].bytes;
    const Stage& stage = chain.stage(l);
    const Bytes backward =
        InputBytes(chain, l) + stage.saved + stage.output_gradient + stage.backward_overhead;
    // After it: its gradient, and its input if that was saved.
    const bool input_stays = InputOf(chain, l).kind == TensorKind::kSaved;
    const Bytes after = chain.gradient(l - 1) + (input_stays ? InputBytes(chain, l) : Bytes(0));
    least = std::max({least, first, again, backward, after});
  }
  return least;
}

Schedule LeastScheduleOnHost(const Chain& chain) {
  const int last = chain.length() + 1;
  const Bytes memory = LeastMemoryOnHost(chain);
  const std::vector<LeastGradient> gradients = LeastGradients(chain);
  // By stage: those whose saving forward runs beside its gradient.
  std::vector<std::vector<int>> saved_beside(static_cast<size_t>(last) + 1);
  for (int l = 1; l <= last; ++l) {
    const bool beside_own =
        !RunsOnce(chain, l) && SavingNeed(chain, l) + chain.gradient(l) <= memory;
    const int beside = RunsOnce(chain, l) ? last
                       : beside_own       ? l
                                          : gradients[static_cast<size_t>(l)].stage;
    saved_beside[static_cast<size_t>(beside)].push_back(l);
  }
  Mover mover(chain);
  const std::vector<int>& first = saved_beside.back();
  for (int l = 1; l <= last; ++l) {
    if (!RunsOnce(chain, l)) mover.RunStage(l);
    if (std::binary_search(first.begin(), first.end(), l)) mover.SaveStage(l);
  }
  for (int l = last; l >= 1; --l) {
    if (l < last) {
      for (const int saved : saved_beside[static_cast<size_t>(l)]) mover.SaveStage(saved);
    }
    mover.RunBackward(l);
  }
  return mover.Take();
}

}  // namespace stowage
