#include "solvers/chain/segments.h"

#include <algorithm>
#include <cstddef>

namespace stowage {
namespace {

// Peak of stages first..last when all of them are kept, above what is held below them: the last
// stage's, folded downwards by KeepBelow.
struct KeptPeak {
  Bytes forward;   // without the gradient that is held during the forwards
  Bytes backward;  // with the gradients

  void KeepBelow(const Stage& stage) {
    forward = stage.saved + std::max(forward, stage.forward_saving_overhead);
    backward = stage.saved + std::max(backward, stage.output_gradient + stage.backward_overhead);
  }
};

}  // namespace

SegmentEnds SequentialSegments(const Chain& chain, int k) {
  const int size = chain.length() / k;
  SegmentEnds ends;
  for (int i = 1; i < k; ++i) ends.push_back(i * size);
  return ends;
}

Schedule SegmentedSchedule(const Chain& chain, const SegmentEnds& ends) {
  const int last = chain.length() + 1;
  Schedule schedule;
  int first = 1;
  for (const int end : ends) {
    schedule.push_back(ForwardKeepInput(first));
    for (int l = first + 1; l <= end; ++l) schedule.push_back(ForwardKeepNothing(l));
    first = end + 1;
  }
  const auto keep_whole = [&schedule](int from, int to) {
    for (int l = from; l <= to; ++l) schedule.push_back(ForwardKeepAll(l));
    for (int l = to; l >= from; --l) schedule.push_back(Backward(l));
  };
  keep_whole(first, last);
  for (size_t i = ends.size(); i-- > 0;) keep_whole(i == 0 ? 1 : ends[i - 1] + 1, ends[i]);
  return schedule;
}

TailPeaks::TailPeaks(const Chain& chain) : chain_(&chain) {
  const int last = chain.length() + 1;
  peaks_.resize(static_cast<size_t>(last) + 1);
  KeptPeak peak;
  for (int l = last; l >= 1; --l) {
    peak.KeepBelow(chain.stage(l));
    peaks_[static_cast<size_t>(l)] = std::max(chain.gradient(last) + peak.forward, peak.backward);
  }
}

SegmentedCosts::SegmentedCosts(const TailPeaks& tails)
    : tails_(tails),
      chain_(tails.chain()),
      checkpoints_(chain_.activation(0)),
      peak_(chain_.gradient(0)) {}

bool SegmentedCosts::Add(int end) {
  const int first = end_ + 1;
  for (int l = first; l <= end; ++l) {
    if (!chain_.stage(l).recomputable()) return false;
  }
  const Bytes seed = chain_.gradient(chain_.length() + 1);
  Bytes input;  // dropped by the forward, but for the segment's own
  for (int l = first; l <= end; ++l) {
    const Stage& stage = chain_.stage(l);
    peak_ = std::max(peak_, checkpoints_ + seed + input + stage.output + stage.forward_overhead);
    input = stage.output;
    recompute_ += stage.forward_time;
  }
  KeptPeak again;
  for (int l = end; l >= first; --l) again.KeepBelow(chain_.stage(l));
  peak_ = std::max(
      {peak_, checkpoints_ + chain_.gradient(end) + again.forward, checkpoints_ + again.backward});
  checkpoints_ += chain_.activation(end);
  end_ = end;
  return true;
}

SegmentedCost SegmentedCosts::Cost() const {
  return {chain_.ideal_time() + recompute_, std::max(peak_, checkpoints_ + tails_.From(end_ + 1)),
          end_};
}

}  // namespace stowage
