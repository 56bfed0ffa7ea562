#include "client/agent/step_watch.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/torch/profile/median.h"

namespace stowage {
namespace {

// How far `measured` is above `predicted`, as a share of it.
template <class Value>
double Off(Value measured, Value predicted) {
  return static_cast<double>((measured - predicted).value()) /
         static_cast<double>(predicted.value());
}

template <class Value>
std::string Words(const char* what, Value measured, Value predicted) {
  return absl::StrCat("the median ", what, " is ", ToString(measured), ", predicted ",
                      ToString(predicted));
}

}  // namespace

void StepWatch::Add(const StepReport& report) {
  if (times_.size() < capacity_) {
    times_.push_back(report.wall_time);
    peaks_.push_back(report.peak);
  } else {
    const size_t oldest = static_cast<size_t>(steps_) % capacity_;
    times_[oldest] = report.wall_time;
    peaks_[oldest] = report.peak;
  }
  latest_ = report;
  ++steps_;
}

void StepWatch::Clear() {
  steps_ = 0;
  times_.clear();
  peaks_.clear();
}

template <class Value>
Value StepWatch::MedianOf(const std::vector<Value>& ring, int64_t last) const {
  const size_t count = std::min(ring.size(), static_cast<size_t>(last));
  std::vector<Value> latest;
  for (size_t back = 1; back <= count; ++back) {
    latest.push_back(ring[(static_cast<size_t>(steps_) - back) % capacity_]);
  }
  return Median(std::move(latest));
}

Nanos StepWatch::MedianTime(int64_t last) const { return MedianOf(times_, last); }
Bytes StepWatch::MedianPeak(int64_t last) const { return MedianOf(peaks_, last); }

std::optional<Drift> DriftOf(const StepWatch& watch, const Simulation& predicted,
                             const DriftOptions& options) {
  if (watch.steps() == 0 || watch.steps() % options.window != 0) return std::nullopt;
  const Bytes peak = watch.MedianPeak(options.window);
  if (options.peak > 0 && predicted.peak > Bytes(0) && Off(peak, predicted.peak) > options.peak) {
    return Drift{ReplanReason::kPeak, Words("peak", peak, predicted.peak)};
  }
  const Nanos time = watch.MedianTime(options.window);
  if (options.time > 0 && predicted.makespan > Nanos(0) &&
      std::abs(Off(time, predicted.makespan)) > options.time) {
    return Drift{ReplanReason::kTime, Words("step time", time, predicted.makespan)};
  }
  return std::nullopt;
}

}  // namespace stowage
