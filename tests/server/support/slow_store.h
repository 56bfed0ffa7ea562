// A store whose answers take until the test lets them through: a remote one that is slow.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_SLOW_STORE_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_SLOW_STORE_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "server/store/memory_plan_store.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {

class SlowStore final : public ForwardingStore {
 public:
  SlowStore() : ForwardingStore(std::make_shared<MemoryPlanStore>(Bytes(64 << 20))) {}

  PlanAnswer Look(const PlanKey& key, Access access) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] {
      return !held_ && !(access == Access::kUpdate && held_key_ && key == *held_key_);
    });
    if (full_) throw std::bad_alloc();
    return ForwardingStore::Look(key, access);
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
    return std::nullopt;
  }

  void Hold() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = true;
  }
  // Who would change that entry waits.
  void HoldChangesOf(const PlanKey& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_key_ = key;
  }
  // From now on lookups end as if the allocator had nothing left.
  void ThrowBadAlloc() {
    std::lock_guard<std::mutex> lock(mutex_);
    full_ = true;
  }
  void Release() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = false;
    held_key_.reset();
    changed_.notify_all();
  }
  // False when fewer lookups have begun after 10 s.
  bool WaitUntilAsked(int lookups) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return waiting_ >= lookups; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool full_ = false;
  std::optional<PlanKey> held_key_;
  int waiting_ = 0;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_SLOW_STORE_H_
