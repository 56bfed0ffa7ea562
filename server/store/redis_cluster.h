// The servers of a Redis cluster, a pool (redis_pool.h) for each: which has which of the 16384 slots that
// keys hash to, they say themselves (CLUSTER SLOTS), and who is asked for what it has given away says
// who has it (MOVED), or will have it soon (ASK).
#ifndef STOWAGE_SERVER_STORE_REDIS_CLUSTER_H_
#define STOWAGE_SERVER_STORE_REDIS_CLUSTER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/redis_client.h"
#include "server/store/redis_pool.h"

namespace stowage {

// The slot that a key is in: of what stands in its first braces, if that is anything; else of all of it.
int RedisSlotOf(const std::string& key);

// Which server has which slots: as one of them told last, and as others said of single slots since. Not thread-safe.
class RedisSlotMap {
 public:
  using Place = std::pair<std::string, int>;  // host and port
  struct Range {
    int last = 0;
    Place place;
  };
  using Ranges = std::map<int, Range>;  // by the first slot

  bool empty() const { return ranges_.empty(); }
  // Null: nobody has it. Until the next change.
  const Place* PlaceOf(int slot) const;
  // Those of the ranges.
  std::set<Place> Places() const;
  void Moved(int slot, const Place& place) { moved_[slot] = place; }
  // All slots anew. Whether any of them is elsewhere than was known; false if nothing was. O(ranges + moves).
  bool Learn(Ranges ranges);

 private:
  Ranges ranges_;
  std::map<int, Place> moved_;
};

// Thread-safe. A call that is sent on takes RedisOptions::timeout once more for each time, three times at most,
// and once to learn who has what: when first used, and after a failure, five times a second at most.
class RedisCluster final : public RedisClient {
 public:
  // `options.address` has nodes.
  explicit RedisCluster(const RedisOptions& options) : options_(options) {}

  absl::StatusOr<Replies> Run(const std::vector<RedisCommand>& commands) override;
  absl::StatusOr<Replies> RunAt(const std::string& key,
                                const std::vector<RedisCommand>& commands) override;
  absl::StatusOr<std::vector<Replies>> RunOnAll(const std::vector<RedisCommand>& commands) override;
  bool is_cluster() const override { return true; }
  int64_t failovers() const override { return failovers_; }

 private:
  using Clock = RedisConnection::Clock;
  using Place = RedisSlotMap::Place;
  using Ranges = RedisSlotMap::Ranges;
  using Pool = std::shared_ptr<RedisPool>;

  absl::StatusOr<Replies> RunThrough(const std::string& key,
                                     const std::vector<RedisCommand>& commands);
  // Null: nobody has the slot.
  Pool PoolOf(int slot);
  Pool PoolAt(const Place& place);
  Pool PoolLocked(const Place& place);
  // Asks who has what, if that is not known, or was wrong and it is time again.
  absl::Status LearnIfNeeded();
  absl::StatusOr<Ranges> Ask(const Place& place, Clock::time_point deadline) const;
  void Learned(Ranges ranges);
  std::vector<Place> PlacesToAsk();
  // The server at `place` has the slot, says another one.
  void NoteMoved(int slot, const Place& place);
  void TellMetrics();

  const RedisOptions options_;
  std::atomic<int64_t> failovers_{0};
  std::atomic<bool> wrong_{false};  // what is known
  std::mutex learn_mutex_;          // held while somebody asks
  std::mutex mutex_;
  RedisSlotMap slots_;
  std::map<Place, Pool> pools_;
  Clock::time_point next_learn_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_CLUSTER_H_
