// Prints what a cluster's caches would do in three days, for several ways to run them.
#include <algorithm>
#include <cstdint>
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

// Whoever takes turns, and whoever asks by key, with the same memory and with as much as gives the same.
std::vector<Way> Routings() {
  std::vector<Way> ways;
  for (const int64_t jobs : {100000, 1000000}) {
    for (const bool by_key : {false, true}) {
      for (const double megabytes : {256.0, 64.0}) {
        if (!by_key && megabytes != 256) continue;
        ways.push_back({by_key ? "by key" : "in turn", {}});
        ways.back().model.routes_by_key = by_key;
        ways.back().model.jobs_per_day = jobs;
        ways.back().model.memory_megabytes = megabytes;
      }
    }
  }
  return ways;
}

void PrintRouting(const Way& way) {
  const DayCount day = SimulateDays(way.model).back();
  const auto count = [](int64_t n) { return static_cast<long long>(n); };
  std::printf("| %s, %lld jobs | %d x %.0f MB | %lld / %lld | %.1f%% | %lld |\n", way.name.c_str(),
              count(way.model.jobs_per_day), way.model.replicas, way.model.memory_megabytes,
              count(day.held_entries), count(day.distinct_entries),
              100.0 * static_cast<double>(day.memory_hits) /
                  static_cast<double>(std::max<int64_t>(day.jobs - day.firsts, 1)),
              count(day.shared_hits));
}

std::vector<Way> Ways() {
  std::vector<Way> ways;
  ways.push_back({"three replicas on one Redis", {}});
  ways.push_back({"the same, Redis comes back empty", {}});
  ways.back().model.failover_loses_all = true;
  ways.push_back({"on one Redis, asked by key", {}});
  ways.back().model.routes_by_key = true;
  // As the manifests have it.
  ways.push_back({"by key, a file each", ways.back().model});
  ways.back().model.file_megabytes = 1024;
  ways.push_back({"by key, a file each, Redis comes back empty", ways.back().model});
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
  ways.push_back({"by key, on one Redis, ten times the jobs", ways.back().model});
  ways.back().model.routes_by_key = true;
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
  std::printf(
      "\nThree replicas on one Redis, third day\n"
      "| asked | memory | entries held / distinct | memory hits of those that could | shared hits "
      "|\n"
      "|---|---|---|---|---|\n");
  for (const auto& way : stowage::Routings()) stowage::PrintRouting(way);
  return 0;
}
