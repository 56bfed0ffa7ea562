// Who of several servers in one process solves.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_SHARED_LEASE_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_SHARED_LEASE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "server/store/solve_lease.h"

namespace stowage::testing {

// Thread-safe. Outlives what it has granted.
class SharedLease final : public SolveLease {
 public:
  LeaseAnswer Acquire(const SolveQuestion& question) override {
    const Name name{question.key, question.budget.value_or(Bytes(-1)).value()};
    std::lock_guard<std::mutex> lock(mutex_);
    if (!held_.insert(name).second) {
      ++refused_;
      return {LeaseState::kTaken, nullptr};
    }
    return {LeaseState::kGranted, std::make_unique<Held>(this, name)};
  }
  // How often another one had it.
  int refused() const { return refused_; }

 private:
  using Name = std::pair<PlanKey, int64_t>;

  class Held final : public HeldLease {
   public:
    Held(SharedLease* lease, Name name) : lease_(lease), name_(std::move(name)) {}
    ~Held() override {
      std::lock_guard<std::mutex> lock(lease_->mutex_);
      lease_->held_.erase(name_);
    }

   private:
    SharedLease* const lease_;
    const Name name_;
  };

  std::atomic<int> refused_{0};
  std::mutex mutex_;
  std::set<Name> held_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_SHARED_LEASE_H_
