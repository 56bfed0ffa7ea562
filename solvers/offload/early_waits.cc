#include "solvers/offload/early_waits.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "solvers/offload/moved_instructions.h"

namespace stowage {
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

}  // namespace stowage
