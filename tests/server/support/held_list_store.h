// A store on another machine that lists nothing until the test lets it.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_HELD_LIST_STORE_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_HELD_LIST_STORE_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "server/store/memory_plan_store.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {

class HeldListStore final : public ForwardingStore {
 public:
  HeldListStore() : ForwardingStore(std::make_shared<MemoryPlanStore>(Bytes(64 << 20))) {}

  absl::StatusOr<std::vector<PlanKey>> List(const std::optional<PlanKey>& after,
                                            size_t limit) override {
    Wait();
    return ForwardingStore::List(after, limit);
  }
  absl::StatusOr<std::vector<PlanKey>> ListOf(const std::string& tenant,
                                              const std::optional<PlanKey>& after,
                                              size_t limit) override {
    Wait();
    return ForwardingStore::ListOf(tenant, after, limit);
  }
  std::optional<std::shared_ptr<const PlanEntry>> GetNow(const PlanKey&, Access) override {
    return std::nullopt;
  }

  void Release() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // False when fewer lists wait after 10 s.
  bool WaitUntilHeld(int lists) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return waiting_ >= lists; });
  }

 private:
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    --waiting_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = true;
  int waiting_ = 0;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_HELD_LIST_STORE_H_
