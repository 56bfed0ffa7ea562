// Servers that share a tier of plans and of decisions, which can be emptied and taken away.
#ifndef STOWAGE_TESTS_SERVER_DECISIONS_SHARED_TIER_H_
#define STOWAGE_TESTS_SERVER_DECISIONS_SHARED_TIER_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/decisions/decided_plan_store.h"
#include "server/decisions/decision_book.h"
#include "server/service/admin.h"
#include "server/service/planning_service.h"
#include "server/store/faulty_plan_store.h"
#include "server/store/memory_plan_store.h"
#include "server/store/redis_plan_store.h"
#include "server/store/sqlite_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/support/answers.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/fake_solver.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {

// Decisions in this process. Thread-safe.
class DecisionsInProcess {
 public:
  // As one of the servers reaches them.
  std::unique_ptr<SharedDecisions> Reach() { return std::make_unique<Reached>(this); }

  void Flush() {
    std::lock_guard<std::mutex> lock(mutex_);
    told_.clear();
    marks_.clear();
  }
  void Forget(const PlanKey& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    told_.erase(key);
  }
  // Does not answer; or takes what it is told, but its answer is lost.
  void SetOut(bool out) { out_ = out; }
  // Takes nothing it is told; or its records cannot be read.
  void SetFull(bool full) { full_ = full; }
  void SetDamaged(bool damaged) { damaged_ = damaged; }
  // Loses all when something is read.
  void FlushAtRead() { flushes_at_read_ = true; }
  // Called with each Tell, before it counts.
  void OnTell(std::function<void()> call) { on_tell_ = std::move(call); }
  void LoseAnswers(bool lose) { loses_answers_ = lose; }
  int tells() const { return tells_; }

 private:
  class Reached final : public SharedDecisions {
   public:
    explicit Reached(DecisionsInProcess* all) : all_(all) {}

    absl::StatusOr<std::vector<Decision>> Heads(const PlanKey& key) override {
      if (all_->out_) return absl::UnavailableError("out");
      std::lock_guard<std::mutex> lock(all_->mutex_);
      std::vector<Decision> heads;
      for (const auto& [id, decision] : all_->told_[key].all) {
        heads.push_back(decision);
        heads.back().kept = nullptr;
      }
      return heads;
    }
    absl::StatusOr<std::vector<Decision>> Read(const PlanKey& key,
                                               const std::vector<DecisionId>& ids) override {
      if (all_->out_) return absl::UnavailableError("out");
      std::lock_guard<std::mutex> lock(all_->mutex_);
      std::vector<Decision> read;
      if (all_->damaged_) return read;
      const auto& told = all_->told_[key].all;
      for (const DecisionId& id : ids) {
        if (told.count(id) > 0) read.push_back(told.at(id));
      }
      return read;
    }
    absl::StatusOr<AllOfKey> ReadAll(const PlanKey& key) override {
      if (all_->out_) return absl::UnavailableError("out");
      if (all_->flushes_at_read_) all_->Flush();
      std::lock_guard<std::mutex> lock(all_->mutex_);
      AllOfKey all;
      for (const auto& [id, decision] : all_->told_[key].all) {
        (all_->damaged_ ? all.unreadable : all.read).push_back(decision);
      }
      return all;
    }
    absl::Status Tell(const PlanKey& key, const std::vector<Decision>& decisions) override {
      if (all_->out_ || all_->full_) return absl::UnavailableError("out");
      if (all_->on_tell_) all_->on_tell_();
      std::lock_guard<std::mutex> lock(all_->mutex_);
      ++all_->tells_;
      for (const Decision& decision : decisions) all_->told_[key].Add(decision);
      return all_->loses_answers_ ? absl::UnavailableError("no answer") : absl::OkStatus();
    }
    absl::StatusOr<std::vector<PlanKey>> Keys(const std::optional<PlanKey>& after, size_t limit,
                                              const StopToken&) override {
      if (all_->out_) return absl::UnavailableError("out");
      std::lock_guard<std::mutex> lock(all_->mutex_);
      std::set<PlanKey> keys;
      for (const auto& [key, told] : all_->told_) {
        if (!told.all.empty() && (!after || *after < key)) keys.insert(key);
      }
      std::vector<PlanKey> first(keys.begin(), keys.end());
      first.resize(std::min(first.size(), limit));
      return first;
    }
    absl::Status Mark() override {
      if (all_->out_) return absl::UnavailableError("out");
      std::lock_guard<std::mutex> lock(all_->mutex_);
      all_->marks_.insert(this);
      return absl::OkStatus();
    }
    absl::Status CheckHasAll() override {
      if (all_->out_) return absl::UnavailableError("out");
      std::lock_guard<std::mutex> lock(all_->mutex_);
      return all_->marks_.count(this) > 0 ? absl::OkStatus() : absl::UnavailableError("no mark");
    }
    absl::StatusOr<bool> IsMarked() override {
      if (all_->out_) return absl::UnavailableError("out");
      std::lock_guard<std::mutex> lock(all_->mutex_);
      return all_->marks_.count(this) > 0;
    }

   private:
    DecisionsInProcess* const all_;
  };

  std::mutex mutex_;
  std::unordered_map<PlanKey, KeyDecisions, absl::Hash<PlanKey>> told_;
  std::set<const Reached*> marks_;
  std::atomic<bool> out_{false}, full_{false}, damaged_{false}, flushes_at_read_{false},
      loses_answers_{false};
  std::atomic<int> tells_{0};
  std::function<void()> on_tell_;
};

// A store of decisions to which nothing can be written while it fails.
class UnreliableStore final : public DecisionStore {
 public:
  UnreliableStore(std::shared_ptr<MemoryDecisionStore> store, const std::atomic<bool>* fails)
      : store_(std::move(store)), fails_(fails) {}
  absl::StatusOr<std::vector<KeyedDecision>> Load() override { return store_->Load(); }
  absl::Status Write(const PlanKey& key, const std::vector<Decision>& decisions) override {
    return *fails_ ? absl::UnavailableError("disk full") : store_->Write(key, decisions);
  }
  absl::Status DropUpTo(const PlanKey& key, int64_t generation) override {
    return *fails_ ? absl::UnavailableError("disk full") : store_->DropUpTo(key, generation);
  }

 private:
  const std::shared_ptr<MemoryDecisionStore> store_;
  const std::atomic<bool>* const fails_;
};

// What servers share, as each of them reaches it.
class SharedTier {
 public:
  virtual ~SharedTier() = default;
  virtual std::unique_ptr<PlanStore> Plans(ServerMetrics* metrics) = 0;
  virtual std::unique_ptr<SharedDecisions> Decisions(ServerMetrics* metrics) = 0;
  virtual void Flush() = 0;
};

class TierInProcess final : public SharedTier {
 public:
  TierInProcess() { Flush(); }
  std::unique_ptr<PlanStore> Plans(ServerMetrics*) override {
    return std::make_unique<Emptied>(this);
  }
  std::unique_ptr<SharedDecisions> Decisions(ServerMetrics*) override { return decisions_.Reach(); }
  void Flush() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      plans_ = std::make_shared<MemoryPlanStore>(Bytes(64 << 20));
    }
    decisions_.Flush();
  }
  DecisionsInProcess* decisions() { return &decisions_; }

 private:
  // What there is since the last Flush, during which servers go on in the background.
  std::shared_ptr<PlanStore> Now() {
    std::lock_guard<std::mutex> lock(mutex_);
    return plans_;
  }

  class Emptied final : public PlanStore {
   public:
    explicit Emptied(TierInProcess* tier) : tier_(tier) {}
    std::shared_ptr<const PlanEntry> Get(const PlanKey& key, Access access) override {
      return tier_->Now()->Get(key, access);
    }
    std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
      return std::nullopt;
    }
    absl::Status Replace(const PlanKey& key, int64_t read, std::shared_ptr<const PlanEntry> entry,
                         Durability durability) override {
      return tier_->Now()->Replace(key, read, std::move(entry), durability);
    }
    absl::Status Put(const PlanKey& key, std::shared_ptr<const PlanEntry> entry) override {
      return tier_->Now()->Put(key, std::move(entry));
    }
    absl::StatusOr<bool> Erase(const PlanKey& key) override { return tier_->Now()->Erase(key); }
    absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                              size_t limit) override {
      return tier_->Now()->List(after, limit);
    }
    absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                                const std::optional<PlanKey>& after,
                                                size_t limit) override {
      return tier_->Now()->ListOf(tenant, after, limit);
    }
    PlanStoreStats stats() const override { return tier_->Now()->stats(); }

   private:
    TierInProcess* const tier_;
  };

  std::mutex mutex_;
  std::shared_ptr<PlanStore> plans_;
  DecisionsInProcess decisions_;
};

// In one server for all tests of the binary, which begin with an empty one.
class TierInRedis final : public SharedTier {
 public:
  TierInRedis() { Flush(); }
  std::unique_ptr<PlanStore> Plans(ServerMetrics* metrics) override {
    return std::make_unique<RedisPlanStore>(RedisStoreOptions(), Redis()->Pool(), metrics);
  }
  std::unique_ptr<SharedDecisions> Decisions(ServerMetrics* metrics) override {
    return std::make_unique<RedisDecisions>("stowage", Redis()->Pool(), metrics);
  }
  void Flush() override { Redis()->Ask({"FLUSHALL"}); }

 private:
  static RedisServer* Redis() {
    static RedisServer server;  // ends with the process
    return &server;
  }
};

struct ServerOptions {
  std::string plans;      // a file; empty: none
  std::string decisions;  // a file; empty: in memory
  PlanningOptions planning;
};

// One of our servers. Every lookup compares its copy with the shared tier, and nothing is done behind
// the test's back: Upkeep is the test's to call.
class DecidingServer {
 public:
  explicit DecidingServer(SharedTier* shared, const ServerOptions& options = {}) {
    auto own = OwnDecisions(options.decisions);
    if (!own) return;
    auto opened = DecisionBook::Open(std::move(own), shared->Decisions(&metrics), &metrics);
    EXPECT_TRUE(opened.ok()) << opened.status();
    book = *std::move(opened);
    std::unique_ptr<PlanStore> tiers =
        std::make_unique<ComparingPlanStore>(shared->Plans(&metrics), book);
    if (!options.plans.empty()) {
      SqlitePlanStore::Options file;
      file.file.path = options.plans;
      auto plans = SqlitePlanStore::Open(file, &metrics);
      EXPECT_TRUE(plans.ok()) << plans.status();
      tiers = std::make_unique<TieredPlanStore>(*std::move(plans), std::move(tiers), kNever);
    }
    tiers = std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
                                              std::move(tiers), kNever);
    store = std::make_unique<DecidedPlanStore>(std::move(tiers), book);
    service = std::make_unique<PlanningService>(options.planning, store.get(), &solver, &metrics);
    admin = std::make_unique<PlanAdmin>(store.get(), &metrics, nullptr);
  }

  absl::StatusOr<ComputeAnswer> Compute(const Profile& profile, const Budget& budget) {
    const int index = next_index_++;
    service->ComputePlan(ComputeRequest{profile, budget, KeyOptions(), std::nullopt},
                         answers.Of(index));
    return answers.WaitFor(index);
  }

  CountingMetrics metrics;
  FakeSolver solver{false};
  Answers answers;
  std::shared_ptr<DecisionBook> book;
  std::unique_ptr<PlanStore> store;
  std::unique_ptr<PlanningService> service;
  std::unique_ptr<PlanAdmin> admin;

 private:
  static constexpr std::chrono::nanoseconds kNever{1};

  static std::unique_ptr<DecisionStore> OwnDecisions(const std::string& path) {
    if (path.empty()) return std::make_unique<MemoryDecisionStore>();
    auto file = SqliteDecisionStore::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }

  int next_index_ = 1000;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_DECISIONS_SHARED_TIER_H_
