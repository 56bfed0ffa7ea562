#include "server/service/resolver.h"

#include <algorithm>
#include <utility>

#include "server/entries/revisions.h"
#include "server/entries/solver_version.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

ResolveQueue::ResolveQueue(const ResolverOptions& options, Time now)
    : options_(options), bucket_(options.interval, options.burst, now) {}

bool ResolveQueue::Add(const ResolveWish& wish, Time now) {
  Forget(now);
  if (size() >= options_.queue_limit) return false;
  if (wish.asked && asked_ >= options_.asked_limit) return false;
  if (!known_.emplace(QuestionOf(wish), Time::max()).second) return false;
  if (wish.asked) ++asked_;
  (wish.reason == ResolveReason::kUpgrade ? upgrades_ : urgent_).push_back(wish);
  return true;
}

std::optional<ResolveWish> ResolveQueue::Take(Time now) {
  if (size() == 0 || !bucket_.Take(now)) return std::nullopt;
  std::deque<ResolveWish>& queue = urgent_.empty() ? upgrades_ : urgent_;
  ResolveWish wish = queue.front();
  queue.pop_front();
  if (wish.asked) --asked_;
  known_[QuestionOf(wish)] = now + options_.rest;
  return wish;
}

std::optional<ResolveQueue::Time> ResolveQueue::NextAt() const {
  if (size() == 0) return std::nullopt;
  return bucket_.NextAt();
}

// The rate bounds how many rest: rest / interval and a burst.
void ResolveQueue::Forget(Time now) {
  for (auto it = known_.begin(); it != known_.end();) {
    it = it->second <= now ? known_.erase(it) : std::next(it);
  }
}

bool NeedsUpgrade(const PlanEntry& entry, Bytes budget, const std::string& version) {
  const StoredPlan* serving = ServingRevision(entry, budget);
  if (entry.frozen || serving == nullptr) return false;
  return std::all_of(entry.plans.begin(), entry.plans.end(), [&](const StoredPlan& stored) {
    return stored.plan->budget != budget ||
           IsNewerVersion(version, stored.plan->provenance.solver_version);
  });
}

std::vector<ResolveWish> UpgradesOf(const PlanKey& key, const PlanEntry& entry,
                                    const std::string& version) {
  std::vector<ResolveWish> wishes;
  for (const StoredPlan& stored : entry.plans) {
    const Bytes budget = stored.plan->budget;
    if (ServingRevision(entry, budget) == &stored && NeedsUpgrade(entry, budget, version)) {
      wishes.push_back({key, budget, ResolveReason::kUpgrade, nullptr});
    }
  }
  return wishes;
}

Resolver::Resolver(const ResolverOptions& options, Solve solve)
    : solve_(std::move(solve)), queue_(options, Clock::now()) {
  thread_ = std::thread([this] { Run(); });
}

Resolver::~Resolver() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

bool Resolver::Want(const ResolveWish& wish) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_ || !queue_.Add(wish, Clock::now())) return false;
  }
  wake_.notify_one();
  return true;
}

void Resolver::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    const std::optional<ResolveQueue::Time> next = queue_.NextAt();
    if (!next) {
      wake_.wait(lock);
      continue;
    }
    const std::optional<ResolveWish> wish = queue_.Take(Clock::now());
    if (!wish) {
      wake_.wait_until(lock, *next);
      continue;
    }
    lock.unlock();
    const bool solved = solve_(*wish);
    lock.lock();
    if (!solved) queue_.GiveBack();
  }
}

}  // namespace stowage
