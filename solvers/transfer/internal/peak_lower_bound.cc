#include "solvers/transfer/internal/peak_lower_bound.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage {
namespace {

// What moves together: of saved tensors perhaps only the part with the output, or only the others.
enum class Piece { kWhole, kOutput, kOthers };

struct Tensor {
  TensorKind kind;
  int stage;
  Piece piece = Piece::kWhole;

  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.kind == b.kind && a.stage == b.stage && a.piece == b.piece;
  }
};

// What a stage saves, piece by piece if the next one is to read the output from it.
std::vector<Tensor> SavedOf(const Chain& chain, int l) {
  const Stage& stage = chain.stage(l);
  if (stage.recomputable() || stage.parts() == 0) return {{TensorKind::kSaved, l}};
  return {{TensorKind::kSaved, l, Piece::kOthers}, {TensorKind::kSaved, l, Piece::kOutput}};
}

Tensor InputOf(const Chain& chain, int l) {
  const bool once = l > 1 && !chain.stage(l - 1).recomputable();
  return once ? SavedOf(chain, l - 1).back() : Tensor{TensorKind::kActivation, l - 1};
}

Bytes InputBytes(const Chain& chain, int l) {
  const Tensor input = InputOf(chain, l);
  if (input.kind == TensorKind::kActivation) return chain.activation(input.stage);
  const Stage& stage = chain.stage(input.stage);
  return input.piece == Piece::kWhole ? stage.saved : stage.part(stage.parts());
}

// What each of the forwards of a stage needs beside a gradient.
Bytes SavingNeed(const Chain& chain, int l) {
  return InputBytes(chain, l) + chain.stage(l).saved + chain.stage(l).forward_saving_overhead;
}
Bytes PlainNeed(const Chain& chain, int l) {
  return InputBytes(chain, l) + chain.stage(l).output + chain.stage(l).forward_overhead;
}

// What the last saving forward of a stage and its backward need, the gradient included: where the forward may run
// beside any gradient from `least` on, and where it is a recompute right before the backward.
Bytes AheadNeed(const Chain& chain, int l, Bytes least) {
  const Stage& stage = chain.stage(l);
  return std::max(
      SavingNeed(chain, l) + least,
      InputBytes(chain, l) + stage.saved + stage.output_gradient + stage.backward_overhead);
}
Bytes StoppedNeed(const Chain& chain, int l) {
  const Stage& stage = chain.stage(l);
  return InputBytes(chain, l) + stage.stopped_saved() + stage.output_gradient +
         std::max(stage.stopped_overhead(), stage.backward_overhead);
}

// The loss runs right before its backward.
bool RunsOnce(const Chain& chain, int l) {
  return l > chain.length() || !chain.stage(l).recomputable();
}

// Whether the recompute before the backward has to stop early for its stage to fit.
bool MustStop(const Chain& chain, int l, Bytes least, Bytes memory) {
  return chain.stage(l).stops() && !RunsOnce(chain, l) && AheadNeed(chain, l, least) > memory;
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
      Move(Op::kOffloadStart, Op::kOffloadWait, held_[i]);
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const Tensor& tensor : wanted) {
      if (std::find(held_.begin(), held_.end(), tensor) != held_.end()) continue;
      Move(Op::kPrefetchStart, Op::kPrefetchWait, tensor);
      held_.push_back(tensor);
    }
  }

  void Append(const Instruction& instruction) { schedule_.push_back(instruction); }
  void Make(const std::vector<Tensor>& made) {
    held_.insert(held_.end(), made.begin(), made.end());
  }
  void Drop(const Tensor& tensor) {
    held_.erase(std::remove(held_.begin(), held_.end(), tensor), held_.end());
  }

  void SaveStage(int l) {
    Hold({InputOf(chain_, l)});
    Append(ForwardSave(l));
    Make(SavedOf(chain_, l));
  }

  // The plain output, by whichever forward needs less.
  void RunStage(int l) {
    Hold({InputOf(chain_, l)});
    if (PlainNeed(chain_, l) <= SavingNeed(chain_, l)) {
      Append(ForwardNoSave(l));
    } else {
      Append(ForwardSave(l));
      Append(DropSavedKeepOutput(l));
    }
    Make({{TensorKind::kActivation, l}});
  }

  void RunBackward(int l) {
    const Tensor input = InputOf(chain_, l);
    const std::vector<Tensor> saved = SavedOf(chain_, l);
    std::vector<Tensor> read = saved;
    read.push_back(input);
    Hold(read);
    Append(Backward(l));
    for (const Tensor& tensor : saved) Drop(tensor);
    if (input.kind == TensorKind::kActivation) Drop(input);
  }

  Schedule Take() { return std::move(schedule_); }

 private:
  // The copies of a tensor one way, each with its wait.
  void Move(Op start, Op wait, const Tensor& tensor) {
    const int parts = tensor.kind == TensorKind::kSaved ? chain_.stage(tensor.stage).parts() : 0;
    const int first = tensor.piece == Piece::kWhole    ? 0
                      : tensor.piece == Piece::kOutput ? parts
                                                       : 1;
    const int last = tensor.piece == Piece::kOthers ? parts - 1 : first;
    for (int part = first; part <= last; ++part) {
      for (const Op op : {start, wait}) {
        Append({op, tensor.stage, tensor.kind, StreamOf(op), static_cast<uint16_t>(part)});
      }
    }
  }

  std::vector<Tensor> held_;
  const Chain& chain_;
  Schedule schedule_;
};

}  // namespace

Bytes PeakLowerBound(const Chain& chain) {
  const int last = chain.length() + 1;
  const Bytes seed = chain.gradient(last);
  const std::vector<LeastGradient> gradients = LeastGradients(chain);
  Bytes least = chain.gradient(0);
  for (int l = 1; l <= last; ++l) {
    const Bytes saving = SavingNeed(chain, l);
    const Bytes first =
        (RunsOnce(chain, l) ? saving : std::min(saving, PlainNeed(chain, l))) + seed;
    Bytes again = AheadNeed(chain, l, gradients[static_cast<size_t>(l)].bytes);
    if (chain.stage(l).stops() && !RunsOnce(chain, l)) {
      again = std::min(again, StoppedNeed(chain, l));
    }
    // After it: its gradient, and its input if that was saved.
    const bool input_stays = InputOf(chain, l).kind == TensorKind::kSaved;
    const Bytes after = chain.gradient(l - 1) + (input_stays ? InputBytes(chain, l) : Bytes(0));
    least = std::max({least, first, again, after});
  }
  return least;
}

Schedule LeastScheduleOnHost(const Chain& chain) {
  const int last = chain.length() + 1;
  const Bytes memory = PeakLowerBound(chain);
  const std::vector<LeastGradient> gradients = LeastGradients(chain);
  // By stage: those whose saving forward runs beside its gradient.
  std::vector<std::vector<int>> saved_beside(static_cast<size_t>(last) + 1);
  std::vector<bool> stops(static_cast<size_t>(last) + 1, false);
  for (int l = 1; l <= last; ++l) {
    stops[static_cast<size_t>(l)] =
        MustStop(chain, l, gradients[static_cast<size_t>(l)].bytes, memory);
    if (stops[static_cast<size_t>(l)]) continue;
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
    const bool saves = std::binary_search(first.begin(), first.end(), l);
    // The plain output comes last, where the next stage finds it; but what is on the host cannot be
    // saved once more, to be reduced.
    const bool saves_first = RunsOnce(chain, l) || PlainNeed(chain, l) <= SavingNeed(chain, l);
    if (saves && saves_first) mover.SaveStage(l);
    if (!RunsOnce(chain, l)) mover.RunStage(l);
    if (saves && !saves_first) mover.SaveStage(l);
  }
  for (int l = last; l >= 1; --l) {
    if (l < last) {
      for (const int saved : saved_beside[static_cast<size_t>(l)]) mover.SaveStage(saved);
    }
    if (stops[static_cast<size_t>(l)]) mover.SaveStage(l);
    mover.RunBackward(l);
  }
  return mover.Take();
}

}  // namespace stowage
