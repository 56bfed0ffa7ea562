// Prints what a cluster's caches would do in three days, for several ways to run them.
#include <cstdio>
#include <string>
#include <vector>

#include "tests/bench/cluster/day_model.h"

namespace stowage {
namespace {

struct Way {
  std::string name;
  ClusterModel model;
};

std::vector<Way> Ways() {
  std::vector<Way> ways;
  ways.push_back({"three replicas on one Redis", {}});
  ways.push_back({"the same, Redis comes back empty", {}});
  ways.back().model.failover_loses_all = true;
  ways.push_back({"three replicas, a file each", {}});
  ways.back().model.shared_megabytes = 0;
  ways.back().model.file_megabytes = 4096;
  ways.push_back({"three replicas, memory alone", {}});
  ways.back().model.shared_megabytes = 0;
  ways.push_back({"one replica with a file", {}});
  ways.back().model.replicas = 1;
  ways.back().model.shared_megabytes = 0;
  ways.back().model.file_megabytes = 4096;
  ways.back().model.churn_hours = 1e9;
  ways.push_back({"on one Redis, ten times the jobs", {}});
  ways.back().model.jobs_per_day = 1000000;
  return ways;
}

void Print(const Way& way) {
  const std::vector<DayCount> days = SimulateDays(way.model);
  for (size_t d = 0; d < days.size(); ++d) {
    const DayCount& day = days[d];
    const auto count = [](int64_t n) { return static_cast<long long>(n); };
    std::printf(
        "| %s | %zu | %.1f%% | %lld / %lld / %lld | %lld | %lld | %lld | %.1f%%, %.0f s | %.0f / "
        "%.0f MB |\n",
        way.name.c_str(), d + 1, 100 * day.HitRatio(), count(day.memory_hits), count(day.file_hits),
        count(day.shared_hits), count(day.firsts), count(day.solves - day.firsts),
        count(day.resolves), 100 * day.Utilisation(way.model), day.worst_wait_seconds,
        day.memory_megabytes, day.shared_megabytes);
  }
  std::printf("| | | room for: %s | | | | | | |\n", FirstLimit(way.model, days.back()).c_str());
}

}  // namespace
}  // namespace stowage

int main() {
  const stowage::ClusterModel model;
  std::printf(
      "%lld jobs a day over %d networks, %d device kinds, %d shapes, %d budgets; %.0f%% of the "
      "networks change a day\n",
      static_cast<long long>(model.jobs_per_day), model.networks, model.device_kinds,
      model.shape_buckets, model.budgets, 100 * model.changed_per_day);
  std::printf(
      "| way | day | hits of those that could | memory / file / shared | firsts | other solves | "
      "anew | solvers busy, longest wait | fullest memory / shared "
      "|\n|---|---|---|---|---|---|---|---|---|\n");
  for (const auto& way : stowage::Ways()) stowage::Print(way);
  return 0;
}
