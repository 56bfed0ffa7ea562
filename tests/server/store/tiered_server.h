// A server's tiers over what several servers share, for tests.
#ifndef STOWAGE_TESTS_SERVER_STORE_TIERED_SERVER_H_
#define STOWAGE_TESTS_SERVER_STORE_TIERED_SERVER_H_

#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "server/store/faulty_plan_store.h"
#include "server/store/memory_plan_store.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/entries.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {

inline constexpr std::chrono::milliseconds kFreshness{200};
inline constexpr std::optional<std::chrono::nanoseconds> kForever = std::chrono::hours(1);
inline const PlanKey kKey = KeyOf("a");

// A server: a tiered store, and hands on its tiers.
struct Server {
  explicit Server(const std::shared_ptr<PlanStore>& shared,
                  std::optional<std::chrono::nanoseconds> freshness = std::nullopt) {
    auto memory = std::make_unique<MemoryPlanStore>(kAmple);
    auto remote = std::make_unique<RemoteStore>(shared);
    fast = memory.get();
    slow = remote.get();
    store = std::make_unique<TieredPlanStore>(std::move(memory), std::move(remote), freshness);
  }
  int64_t GenerationOf(const PlanKey& key, Access access = Access::kLookup) const {
    const auto entry = store->Get(key, access);
    return entry ? entry->generation : -1;
  }

  MemoryPlanStore* fast;
  RemoteStore* slow;
  std::unique_ptr<TieredPlanStore> store;
};

inline std::shared_ptr<FaultyPlanStore> Shared() {
  return std::make_shared<FaultyPlanStore>(std::make_unique<MemoryPlanStore>(kAmple),
                                           FaultPolicy{});
}

inline void GrowStale() { std::this_thread::sleep_for(kFreshness + std::chrono::milliseconds(5)); }

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_TIERED_SERVER_H_
