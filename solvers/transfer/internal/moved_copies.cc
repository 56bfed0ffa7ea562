#include "solvers/transfer/internal/moved_copies.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

namespace stowage {

Schedule WithMoved(const Schedule& schedule, const std::vector<size_t>& before) {
  std::vector<size_t> order(schedule.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&before](size_t a, size_t b) {
    if (before[a] != before[b]) return before[a] < before[b];
    return (before[a] != a) > (before[b] != b);
  });
  Schedule moved;
  moved.reserve(schedule.size());
  for (const size_t i : order) moved.push_back(schedule[i]);
  return moved;
}

namespace {

// By instruction: when compute has to reach it for everything to be as it is. Copies that start on time
// end on time.
std::vector<Nanos> LatestTimes(const Schedule& schedule,
                               const std::vector<TimelinePoint>& timeline) {
  std::vector<Nanos> latest(schedule.size());
  Nanos end;
  for (const TimelinePoint& point : timeline) end = std::max(end, point.end);
  for (size_t i = schedule.size(); i-- > 0;) {
    const Op op = schedule[i].op;
    if (op == Op::kOffloadStart || op == Op::kPrefetchStart) {
      end = std::min(end, timeline[i].start);
    } else if (!IsTransfer(op)) {
      end -= timeline[i].end - timeline[i].start;
    }
    latest[i] = end;
  }
  return latest;
}

}  // namespace

Schedule WithEarlyWaits(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                        const std::vector<size_t>& earliest, double margin) {
  const std::vector<Nanos> latest = LatestTimes(schedule, timeline);
  std::map<std::tuple<TensorKind, int32_t, uint16_t>, size_t> starts;  // of offloads met so far
  std::vector<size_t> before(schedule.size());
  for (size_t i = 0; i < schedule.size(); ++i) {
    before[i] = i;
    const Instruction& instruction = schedule[i];
    const auto key = std::make_tuple(instruction.tensor, instruction.stage, instruction.part);
    if (instruction.op == Op::kOffloadStart) starts[key] = i;
    if (instruction.op != Op::kOffloadWait) continue;
    const size_t start = starts.at(key);
    const TimelinePoint& copy = timeline[start];
    const auto time = static_cast<double>((copy.end - copy.start).value());
    const Nanos end = copy.end + Nanos(static_cast<int64_t>(time * margin));
    const auto first =
        latest.begin() + static_cast<std::ptrdiff_t>(std::max(earliest[i], start + 1));
    const auto here = latest.begin() + static_cast<std::ptrdiff_t>(i);
    if (first >= here) continue;
    before[i] = static_cast<size_t>(std::lower_bound(first, here, end) - latest.begin());
  }
  return WithMoved(schedule, before);
}

namespace {

// By instruction: when compute reaches it.
std::vector<Nanos> ReachedAt(const Schedule& schedule, const std::vector<TimelinePoint>& timeline) {
  std::vector<Nanos> reached;
  Nanos now;
  for (size_t i = 0; i < schedule.size(); ++i) {
    reached.push_back(now);
    const Op op = schedule[i].op;
    const bool starts_copy = op == Op::kOffloadStart || op == Op::kPrefetchStart;
    if (!starts_copy) now = std::max(now, timeline[i].end);
  }
  return reached;
}

class Delays {
 public:
  Delays(const Schedule& schedule, const std::vector<TimelinePoint>& timeline, bool full_duplex,
         double margin)
      : schedule_(schedule),
        timeline_(timeline),
        reached_(ReachedAt(schedule, timeline)),
        full_duplex_(full_duplex),
        margin_(margin),
        last_(schedule.size()) {}

  // By instruction: the one before which it is to come; itself where it stays. Copies of a channel keep
  // their order.
  std::vector<size_t> Run() {
    std::vector<size_t> before(schedule_.size());
    for (size_t i = schedule_.size(); i-- > 0;) {
      before[i] = i;
      const Instruction& instruction = schedule_[i];
      const auto key = std::make_tuple(instruction.tensor, instruction.stage, instruction.part);
      if (instruction.op == Op::kPrefetchWait) waits_[key] = i;
      if (instruction.op == Op::kPrefetchStart) before[i] = Delay(i, waits_.at(key));
      if (instruction.op == Op::kOffloadStart && !full_duplex_) Limit(i, timeline_[i].start);
    }
    return before;
  }

 private:
  size_t Delay(size_t i, size_t wait) {
    const TimelinePoint& copy = timeline_[i];
    const auto time = static_cast<double>((copy.end - copy.start).value());
    const Nanos kept(static_cast<int64_t>(time * (1.0 + margin_)));
    const Nanos end = std::min(timeline_[wait].end, channel_free_until_);
    const Nanos start = std::max(copy.start, end - kept);
    const auto first = reached_.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = reached_.begin() + static_cast<std::ptrdiff_t>(std::min(wait, last_) + 1);
    // The last that compute reaches by then.
    const auto next = std::upper_bound(first, std::min(last, reached_.end()), start);
    const size_t place = next == first ? i : static_cast<size_t>(next - reached_.begin()) - 1;
    Limit(place, start);
    return place;
  }

  // Copies before it on the channel start no later, and end by then.
  void Limit(size_t place, Nanos start) {
    last_ = place;
    channel_free_until_ = start;
  }

  const Schedule& schedule_;
  const std::vector<TimelinePoint>& timeline_;
  const std::vector<Nanos> reached_;
  const bool full_duplex_;
  const double margin_;
  std::map<std::tuple<TensorKind, int32_t, uint16_t>, size_t> waits_;  // of prefetches met so far
  size_t last_;
  Nanos channel_free_until_{std::numeric_limits<int64_t>::max()};
};

}  // namespace

Schedule WithLatePrefetches(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                            bool full_duplex, double margin) {
  return WithMoved(schedule, Delays(schedule, timeline, full_duplex, margin).Run());
}

}  // namespace stowage
