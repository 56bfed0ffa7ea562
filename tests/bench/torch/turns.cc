#include "tests/bench/torch/turns.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tests/bench/thread_cpu.h"

namespace stowage {

absl::StatusOr<std::vector<StepTimes>> TakeTurns(const std::vector<Step>& ways, int warmups,
                                                 int rounds, int before) {
  std::vector<StepTimes> times(ways.size());
  for (int round = -warmups; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t way = (i + static_cast<size_t>(round + warmups)) % ways.size();
      for (int earlier_steps = 0; earlier_steps < before; ++earlier_steps) {
        const absl::StatusOr<StepReport> earlier = ways[way]();
        if (!earlier.ok()) return earlier.status();
      }
      const Nanos start = ThreadCpu();
      const absl::StatusOr<StepReport> report = ways[way]();
      if (!report.ok()) return report.status();
      const Nanos cpu = ThreadCpu() - start;
      const Nanos wall = report->wall_time;  // waits for it
      if (round < 0) continue;
      times[way].cpu.push_back(cpu);
      times[way].wall.push_back(wall);
      times[way].peak = std::max(times[way].peak, report->peak);
    }
  }
  return times;
}

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t quarter = values.size() / 4;
  return {values[values.size() / 2], values[quarter], values[values.size() - 1 - quarter]};
}

std::vector<double> Ratios(const std::vector<Nanos>& times, const std::vector<Nanos>& others) {
  std::vector<double> ratios;
  for (size_t i = 0; i < times.size(); ++i) {
    ratios.push_back(static_cast<double>(times[i].value()) /
                     static_cast<double>(others[i].value()));
  }
  return ratios;
}

std::string ToString(const Spread& spread) {
  return absl::StrFormat("%.3f (%.3f to %.3f)", spread.median, spread.low, spread.high);
}

}  // namespace stowage
