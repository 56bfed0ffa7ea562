#include "tests/bench/torch/turns.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "tests/bench/thread_cpu.h"

namespace stowage {

absl::StatusOr<std::vector<StepTimes>> TakeTurns(const std::vector<Step>& ways, int warmups,
                                                 int rounds) {
  std::vector<StepTimes> times(ways.size());
  for (int round = -warmups; round < rounds; ++round) {
    for (size_t i = 0; i < ways.size(); ++i) {
      const size_t way = (i + static_cast<size_t>(round + warmups)) % ways.size();
      const Nanos start = ThreadCpu();
      const absl::StatusOr<StepReport> report = ways[way]();
      if (!report.ok()) return report.status();
      if (round < 0) continue;
      times[way].cpu.push_back(ThreadCpu() - start);
      times[way].wall.push_back(report->wall_time);
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
