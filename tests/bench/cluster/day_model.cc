#include "tests/bench/cluster/day_model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <queue>
#include <random>
#include <unordered_map>
#include <unordered_set>

#include "tests/bench/cluster/lru.h"

namespace stowage {
namespace {

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;
constexpr double kFailoverSeconds = 60;
// What a failover that loses little loses: writes that were not replicated yet.
constexpr double kUnreplicatedSeconds = 1;

// Numbers that a key has for its budgets.
constexpr uint64_t kBudgetSlots = 64;

// Of a lognormal, with `share` of the draws over `times` times the median.
double SigmaFor(double times, double normal_quantile) { return std::log(times) / normal_quantile; }

// The finaliser of splitmix64.
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

struct Replica {
  uint64_t address;  // another one after each replacement
  Lru memory;
  Lru file;
  std::priority_queue<double, std::vector<double>, std::greater<>> threads;  // when each is free
  double next_resolve = 0;
  std::vector<uint64_t> outdated;  // plans of the solver before the upgrade, to solve anew
};

class Days {
 public:
  explicit Days(const ClusterModel& model)
      : model_(model), draw_(model.seed), shared_(model.shared_megabytes) {
    for (int i = 0; i < model.replicas; ++i) replicas_.push_back(NewReplica());
    Weights();
    next_churn_ = model.churn_hours * kHour;
  }

  std::vector<DayCount> Run() {
    std::vector<DayCount> days(static_cast<size_t>(model_.days));
    for (int d = 0; d < model_.days; ++d) {
      DayCount& day = days[static_cast<size_t>(d)];
      ChangeNetworks();
      const double step = kDay / static_cast<double>(model_.jobs_per_day);
      for (int64_t j = 0; j < model_.jobs_per_day; ++j) {
        // Twice as many at noon as at night on average, by a shift of time within the day.
        const double even = static_cast<double>(j) * step;
        now_ = d * kDay + even + kDay / (6 * M_PI) * std::sin(2 * M_PI * even / kDay);
        Events(&day);
        Job(&day);
      }
      Close(&day);
    }
    return days;
  }

 private:
  Replica NewReplica() {
    Replica replica{
        ++last_address_, Lru(model_.memory_megabytes), Lru(model_.file_megabytes), {}, 0, {}};
    for (int t = 0; t < model_.solver_threads; ++t) replica.threads.push(now_);
    return replica;
  }

  void Weights() {
    std::vector<double> weights;
    for (int n = 1; n <= model_.networks; ++n) {
      weights.push_back(1 / std::pow(n, model_.popularity));
    }
    network_ = std::discrete_distribution<int>(weights.begin(), weights.end());
    weights.clear();
    for (int k = 1; k <= model_.device_kinds; ++k) weights.push_back(1.0 / k);
    kind_ = std::discrete_distribution<int>(weights.begin(), weights.end());
    version_.assign(static_cast<size_t>(model_.networks), 0);
  }

  void ChangeNetworks() {
    std::bernoulli_distribution changes(model_.changed_per_day);
    for (int& version : version_) version += changes(draw_) ? 1 : 0;
  }

  void Events(DayCount* day) {
    if (now_ >= next_churn_) {
      next_churn_ += model_.churn_hours * kHour;
      // It leaves with its file: another machine takes its place.
      replicas_[static_cast<size_t>(draw_() % replicas_.size())] = NewReplica();
    }
    if (!upgraded_ && now_ >= model_.upgrade_hour * kHour) Upgrade();
    if (!failed_over_ && now_ >= model_.failover_hour * kHour) FailOver();
    for (Replica& replica : replicas_) Resolve(&replica, day);
  }

  void Upgrade() {
    upgraded_ = true;
    const std::vector<uint64_t> solved(solved_.begin(), solved_.end());
    for (size_t r = 0; r < replicas_.size(); ++r) {
      replicas_[r].memory.Clear();
      // Each replica finds outdated what it is asked for; one of them takes the wish.
      for (size_t i = r; i < solved.size(); i += replicas_.size()) {
        replicas_[r].outdated.push_back(solved[i]);
      }
      replicas_[r].next_resolve = now_;
    }
  }

  void FailOver() {
    failed_over_ = true;
    away_until_ = now_ + kFailoverSeconds;
    if (model_.failover_loses_all) shared_.Clear();
    for (const auto& [key, when] : lately_) {
      if (when >= now_ - kUnreplicatedSeconds) shared_.Remove(key);
    }
  }

  // In the background, where a thread is free.
  void Resolve(Replica* replica, DayCount* day) {
    while (!replica->outdated.empty() && replica->next_resolve <= now_ &&
           replica->threads.top() <= now_) {
      replica->outdated.pop_back();
      replica->next_resolve += 1 / model_.resolves_per_second;
      ++day->resolves;
      Occupy(replica, day);
    }
  }

  // Returns when the answer is there.
  double Occupy(Replica* replica, DayCount* day) {
    const double start = std::max(now_, replica->threads.top());
    replica->threads.pop();
    const double took = Lognormal(model_.solve_seconds, SigmaFor(30, 2.326));
    replica->threads.push(start + took);
    day->solve_hours += took / kHour;
    return start;
  }

  double Lognormal(double median, double sigma) {
    return median * std::exp(sigma * std::normal_distribution<double>()(draw_));
  }

  void Job(DayCount* day) {
    ++day->jobs;
    const int network = network_(draw_);
    const auto pick = [this](int count) { return static_cast<uint64_t>(draw_() % count); };
    uint64_t key = static_cast<uint64_t>(network);
    key = key * 4096 + static_cast<uint64_t>(version_[static_cast<size_t>(network)]);
    key = key * 16 + static_cast<uint64_t>(kind_(draw_));
    key = key * 64 + pick(model_.shape_buckets);
    key = key * kBudgetSlots + pick(model_.budgets);
    if (seen_.insert(key).second) ++day->firsts;
    Replica& replica = ReplicaFor(key);
    if (replica.memory.Touch(key)) {
      ++day->memory_hits;
      return;
    }
    const double size = SizeOf(key);
    const bool shared_answers = model_.shared_megabytes > 0 && now_ >= away_until_;
    if (replica.file.Touch(key)) {
      ++day->file_hits;
    } else if (shared_answers && shared_.Touch(key)) {
      ++day->shared_hits;
    } else {
      ++day->solves;
      solved_.insert(key);
      const double start = Occupy(&replica, day);
      day->worst_wait_seconds = std::max(day->worst_wait_seconds, start - now_);
      if (shared_answers) {
        shared_.Insert(key, size);
        Lately(key);
      }
    }
    replica.memory.Insert(key, size);
    if (model_.file_megabytes > 0) replica.file.Insert(key, size);
  }

  // The budgets of a key stay together.
  Replica& ReplicaFor(uint64_t key) {
    if (!model_.routes_by_key) return replicas_[draw_() % replicas_.size()];
    const auto score = [key](const Replica& replica) {
      return Mix(Mix(key / kBudgetSlots + 1) ^ Mix(replica.address));
    };
    return *std::max_element(
        replicas_.begin(), replicas_.end(),
        [&score](const Replica& a, const Replica& b) { return score(a) < score(b); });
  }

  void Lately(uint64_t key) {
    lately_.emplace_back(key, now_);
    if (lately_.size() > 1000) lately_.erase(lately_.begin(), lately_.begin() + 500);
  }

  // In megabytes, the same for a key each time. An entry holds its budgets together: each counts for
  // its part.
  double SizeOf(uint64_t key) {
    const auto [found, fresh] = sizes_.try_emplace(key, 0);
    if (fresh) {
      found->second = Lognormal(model_.entry_kilobytes, SigmaFor(10, 1.2816)) / 1024 /
                      static_cast<double>(model_.budgets);
      stored_ += found->second;
    }
    return found->second;
  }

  void Close(DayCount* day) {
    for (const Replica& replica : replicas_) {
      day->memory_megabytes = std::max(day->memory_megabytes, replica.memory.used());
      day->held_entries += static_cast<int64_t>(replica.memory.size());
    }
    day->distinct_entries = std::count_if(seen_.begin(), seen_.end(), [this](uint64_t key) {
      return std::any_of(replicas_.begin(), replicas_.end(),
                         [key](const Replica& replica) { return replica.memory.Holds(key); });
    });
    day->shared_megabytes = shared_.used();
    day->stored_megabytes = stored_;
  }

  const ClusterModel& model_;
  std::mt19937_64 draw_;
  std::discrete_distribution<int> network_;
  std::discrete_distribution<int> kind_;
  std::vector<int> version_;
  double now_ = 0;
  double next_churn_ = 0;
  bool upgraded_ = false;
  bool failed_over_ = false;
  double away_until_ = 0;
  uint64_t last_address_ = 0;
  std::vector<Replica> replicas_;
  Lru shared_;
  std::unordered_set<uint64_t> seen_;
  std::unordered_set<uint64_t> solved_;
  std::unordered_map<uint64_t, double> sizes_;
  std::vector<std::pair<uint64_t, double>> lately_;
  double stored_ = 0;
};

}  // namespace

double DayCount::HitRatio() const {
  const int64_t hits = memory_hits + file_hits + shared_hits;
  return static_cast<double>(hits) / static_cast<double>(std::max<int64_t>(jobs - firsts, 1));
}

double DayCount::Utilisation(const ClusterModel& model) const {
  return solve_hours / (24.0 * model.replicas * model.solver_threads);
}

std::vector<DayCount> SimulateDays(const ClusterModel& model) { return Days(model).Run(); }

std::string FirstLimit(const ClusterModel& model, const DayCount& day) {
  // One replica has answered 64,841 from its memory (service_load in measured/figures.md); on a slower processor this many.
  constexpr double kHitsPerSecond = 24000;
  struct Limit {
    const char* what;
    double room;
  };
  const double infinite = std::numeric_limits<double>::infinity();
  const Limit limits[] = {
      {"solver threads", 0.7 / std::max(day.Utilisation(model), 1e-9)},
      {"calls per second", kHitsPerSecond * model.replicas * kDay / 3 /
                               static_cast<double>(std::max<int64_t>(day.jobs, 1))},
      {"shared tier's memory", model.shared_megabytes > 0
                                   ? model.shared_megabytes / std::max(day.stored_megabytes, 1e-9)
                                   : infinite},
      {"replicas' memory", model.memory_megabytes / std::max(day.stored_megabytes, 1e-9)},
  };
  std::string text;
  for (const Limit& limit : limits) {
    char line[96];
    std::snprintf(line, sizeof(line), "%s%s %.1fx", text.empty() ? "" : ", ", limit.what,
                  limit.room);
    if (limit.room < infinite) text += line;
  }
  return text;
}

}  // namespace stowage
