// Times out of the samples of passes (StageSample, NodeSample).
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_TIMES_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_TIMES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/torch/profile/profile_report.h"
#include "solvers/model/units.h"

namespace stowage {

// Passes of one model, each with a sample of every stage or node.
template <class Sample>
using Passes = std::vector<std::vector<Sample>>;

// Of one value at least. Of two in the middle the upper one.
inline TimeSpread SpreadOf(std::vector<Nanos> times) {
  std::sort(times.begin(), times.end());
  const size_t quarter = (times.size() - 1) / 4;
  return {times[quarter], times[times.size() / 2], times[times.size() - 1 - quarter],
          static_cast<int>(times.size())};
}

// Of stage or node number i. A plan runs both kinds of forward and counts one time for both.
template <class Sample>
StageTimes TimesOf(const Passes<Sample>& passes, size_t i) {
  std::vector<Nanos> forward;
  std::vector<Nanos> backward;
  for (const std::vector<Sample>& pass : passes) {
    forward.insert(forward.end(), {pass[i].forward_time, pass[i].forward_saving_time});
    backward.push_back(pass[i].backward_time);
  }
  return {SpreadOf(std::move(forward)), SpreadOf(std::move(backward))};
}

// What stage or vertex number i, whose other costs are `step`'s, takes where its recompute stops early in all passes.
template <class Sample, class Step>
void SetStoppedRecompute(const Passes<Sample>& passes, size_t i, bool with_times, Step* step) {
  std::vector<Nanos> times;
  Bytes overhead;
  for (const std::vector<Sample>& pass : passes) {
    if (!pass[i].stops) return;
    times.push_back(pass[i].stopped_time);
    overhead = std::max(overhead, pass[i].stopped_overhead);
  }
  if (overhead > step->output + step->forward_saving_overhead) return;
  const Nanos time = with_times ? SpreadOf(std::move(times)).median : Nanos(0);
  step->recompute_saving_time = std::min(time, step->forward_time);
  step->recompute_saving_overhead = overhead;
}

// Of one pass: a step that runs each kind of forward as often.
template <class Sample>
Nanos StepTime(const std::vector<Sample>& pass) {
  int64_t forwards = 0;
  Nanos backwards;
  for (const Sample& sample : pass) {
    forwards += sample.forward_time.value() + sample.forward_saving_time.value();
    backwards += sample.backward_time;
  }
  return Nanos(forwards / 2) + backwards;
}

template <class Sample>
Nanos SumOfMedians(const Passes<Sample>& passes) {
  Nanos sum;
  for (size_t i = 0; i < passes.front().size(); ++i) {
    const StageTimes times = TimesOf(passes, i);
    sum += times.forward.median + times.backward.median;
  }
  return sum;
}

template <class Sample>
void ScaleTimes(double factor, Passes<Sample>* passes) {
  const auto scale = [factor](Nanos* time) {
    *time = Nanos(std::llround(static_cast<double>(time->value()) * factor));
  };
  for (std::vector<Sample>& pass : *passes) {
    for (Sample& sample : pass) {
      scale(&sample.forward_time);
      scale(&sample.forward_saving_time);
      scale(&sample.backward_time);
      scale(&sample.stopped_time);
    }
  }
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_TIMES_H_
