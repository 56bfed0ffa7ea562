// All decisions that a server knows: in memory to be looked up, in a store of its own so that they
// outlive it, and exchanged with what servers share.
#ifndef STOWAGE_SERVER_DECISIONS_DECISION_BOOK_H_
#define STOWAGE_SERVER_DECISIONS_DECISION_BOOK_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/decisions/decision.h"
#include "server/decisions/decision_store.h"
#include "server/decisions/shared_decisions.h"
#include "server/observe/server_metrics.h"
#include "solvers/base/stop_token.h"

namespace stowage {

// Thread-safe.
class DecisionBook {
 public:
  // Load's errors. `shared` is null where no other server has the plans. `metrics` outlives the book.
  // `upkeep`: how often a thread of its own does Upkeep; nothing: there is none.
  static absl::StatusOr<std::unique_ptr<DecisionBook>> Open(
      std::unique_ptr<DecisionStore> own, std::unique_ptr<SharedDecisions> shared,
      ServerMetrics* metrics, std::optional<std::chrono::nanoseconds> upkeep = std::nullopt);
  ~DecisionBook();

  // Null: nothing was decided. O(1), waits for nothing slow.
  std::shared_ptr<const KeyDecisions> Find(const PlanKey& key) const;

  // From now on these count. OK: they are in the server's own store, synced, and where other servers
  // find them. UNAVAILABLE: they do not count. (What may have reached the others is withdrawn by a
  // later decision, which is told when they can be reached again.) ABORTED where there are others by then than those of
  // `edition` (KeyDecisions::edition; 0: none), of which these were made.
  absl::Status Decide(const PlanKey& key, uint64_t edition, std::vector<Decision> decisions);

  // Learns about the key what other servers have decided, and tells what they lack. One round trip
  // where all is known. What cannot be compared now is compared the next time.
  void Compare(const PlanKey& key);

  // At most `limit` keys, rising, of those after `after` that something was decided about, as far as this server and what
  // servers share know. UNAVAILABLE: these cannot say, or may lack some still, since they were lost, or this server has begun, less
  // than three upkeeps ago. CANCELLED: nobody waits any more. O(keys), and SharedDecisions::Keys.
  absl::StatusOr<std::vector<PlanKey>> Keys(const std::optional<PlanKey>& after, size_t limit,
                                            const StopToken& stop) const;

  // Whether all that was decided is to be found by Keys and Gathered: else they may have left something out since it was asked last.
  // UNAVAILABLE as of Keys.
  absl::Status CheckComplete() const;

  // All that counts of what this server and what servers share know of the key. UNAVAILABLE: these cannot say, or some of it cannot be
  // read. Changes nothing.
  absl::StatusOr<std::vector<Decision>> Gathered(const PlanKey& key) const;

  // Takes decisions about the key as if another server had told them. Those that count now and did not before.
  // OK: the server's own store and what servers share have them, or later ones. UNAVAILABLE: some may count; to be repeated.
  absl::StatusOr<std::vector<Decision>> Take(const PlanKey& key,
                                             const std::vector<Decision>& decisions);

  // Tells everything once, and again when the shared decisions were lost, or are sealed under another key now; each
  // kUpkeepsPerLook-th time looks at each key, of which the decisions may have been evicted alone. Writes what was learned and could
  // not be written. Cheap where nothing is to be done.
  void Upkeep();
  static constexpr int kUpkeepsPerLook = 60;

  // At most `limit` keys in rising order, those after `after`, of which there is an entry whatever the
  // tiers have (HeldEntry); of one tenant, or of all. O(log keys + limit).
  std::vector<PlanKey> Held(const std::optional<std::string>& tenant,
                            const std::optional<PlanKey>& after, size_t limit) const;

 private:
  // Whoever asks for it first has it first: an import, which takes it again and again, keeps no decision waiting.
  class TurnMutex {
   public:
    void lock() {
      std::unique_lock<std::mutex> lock(mutex_);
      const uint64_t turn = next_++;
      changed_.wait(lock, [this, turn] { return now_ == turn; });
    }
    void unlock() {
      {
        std::lock_guard<std::mutex> lock(mutex_);
        ++now_;
      }
      changed_.notify_all();
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t next_ = 0, now_ = 0;
  };
  using Writing = std::lock_guard<TurnMutex>;

  DecisionBook(std::unique_ptr<DecisionStore> own, std::unique_ptr<SharedDecisions> shared,
               ServerMetrics* metrics, std::chrono::nanoseconds settles)
      : own_(std::move(own)), shared_(std::move(shared)), metrics_(metrics), settles_(settles) {}

  void Run(std::chrono::nanoseconds pause);
  KeyDecisions Known(const PlanKey& key) const;
  // Those with write_mutex_ held:
  void Exchange(const PlanKey& key, const std::vector<Decision>& heads);
  void LearnNews(const PlanKey& key, const std::vector<Decision>& heads);
  // Nothing of the key is learned and not in own_.
  absl::Status CatchUp(const PlanKey& key);
  void Learn(const PlanKey& key, const std::vector<Decision>& decisions);
  void Install(const PlanKey& key, const std::vector<Decision>& decisions);
  absl::Status Write(const PlanKey& key, const std::vector<Decision>& decisions);
  void Withdraw(const PlanKey& key, const std::vector<Decision>& decisions);
  void DropWhatIsOver(const PlanKey& key, const std::vector<Decision>& decisions);
  void WriteUnwritten();
  std::vector<PlanKey> KnownKeys() const;
  bool stopped();
  bool TellAll();

  const std::unique_ptr<DecisionStore> own_;
  const std::unique_ptr<SharedDecisions> shared_;
  ServerMetrics* const metrics_;
  // After all was told, how long until the others have told what they know, too.
  const std::chrono::nanoseconds settles_;
  // When all was told that had been lost; 0: it was not. Of the steady clock, in nanoseconds.
  std::atomic<int64_t> told_all_at_ns_{0};

  // One change at a time, from what is known to what is written. Before mutex_.
  TurnMutex write_mutex_;
  std::set<PlanKey> unwritten_;  // learned, but not in own_

  mutable std::shared_mutex mutex_;
  std::atomic<bool> any_{false};
  uint64_t editions_ = 0;
  std::unordered_map<PlanKey, std::shared_ptr<const KeyDecisions>, absl::Hash<PlanKey>> known_;
  std::set<PlanKey> held_;
  std::map<std::string, std::set<PlanKey>> held_of_tenants_;  // a key is one tenant's for ever

  std::mutex upkeep_mutex_;
  int upkeeps_ = 0;  // since all keys were looked at

  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_DECISION_BOOK_H_
