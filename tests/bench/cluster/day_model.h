// A cluster's days on paper: jobs that ask for plans, the caches that answer, the solvers behind
// them. No time passes and nothing is planned; what is counted is who hits what.
#ifndef STOWAGE_TESTS_BENCH_CLUSTER_DAY_MODEL_H_
#define STOWAGE_TESTS_BENCH_CLUSTER_DAY_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

namespace stowage {

// What is measured says where; all else is assumed, for nobody has measured a cluster. Change it to your own.
struct ClusterModel {
  int days = 3;  // the first one starts with empty caches
  int64_t jobs_per_day = 100000;
  int networks = 2000;
  double popularity = 1.0;       // Zipf: the n-th network is asked for as 1 / n^popularity
  double changed_per_day = 0.1;  // of the networks get a new structure
  int device_kinds = 3;          // asked for as 1, 1/2, 1/3
  int shape_buckets = 4;         // batch sizes and sequence lengths, equally often
  int budgets = 3;               // per key
  // Median; a tenth are over 10 times as large. Between what is measured of 50 and of 339 stages with four plans
  // and five samples, 14 and 91 kB (plan_store_bench in measured/figures.md).
  double entry_kilobytes = 40;
  // Median, as measured (service_load --scenario=herd in measured/figures.md: 0.458 s); that one in a hundred takes
  // over 30 times as long is assumed.
  double solve_seconds = 0.46;
  int replicas = 3;
  // Each key has its replica, by rendezvous hashing, as clients of client/rpc ask; else they take turns.
  bool routes_by_key = false;
  int solver_threads = 2;           // of each
  double memory_megabytes = 256;    // of each replica's cache
  double shared_megabytes = 4096;   // of the tier that they share; 0: there is none
  double file_megabytes = 0;        // of a tier of each replica's own that outlives it; 0: none
  double upgrade_hour = 38;         // all replicas restart with a new solver, one after the other
  double churn_hours = 2;           // a replica leaves, and an empty one joins
  double failover_hour = 40;        // the shared tier is away for a minute; sentinels take seconds
  bool failover_loses_all = false;  // and comes back empty; else without what it got last
  // Of one replica, after an upgrade, as server/operating.md has it.
  double resolves_per_second = 0.5;
  uint64_t seed = 1;
};

struct DayCount {
  int64_t jobs = 0;
  int64_t firsts = 0;  // of their key and budget since the network changed: nobody could hit
  int64_t memory_hits = 0;
  int64_t file_hits = 0;
  int64_t shared_hits = 0;
  int64_t solves = 0;    // for a caller that waited
  int64_t resolves = 0;  // in the background
  double solve_hours = 0;
  double worst_wait_seconds = 0;  // for a solver thread
  double memory_megabytes = 0;    // of the fullest replica, at the end
  int64_t held_entries = 0;       // in all replicas' memory, at the end
  int64_t distinct_entries = 0;   // among these
  double shared_megabytes = 0;
  double stored_megabytes = 0;  // of all entries that anybody asked for in these days

  // Of the jobs that could hit.
  double HitRatio() const;
  // Of all solver threads' time.
  double Utilisation(const ClusterModel& model) const;
};

std::vector<DayCount> SimulateDays(const ClusterModel& model);

// What would run out first if there were more jobs like these: the resource and how many times the
// jobs it has room for.
std::string FirstLimit(const ClusterModel& model, const DayCount& day);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CLUSTER_DAY_MODEL_H_
