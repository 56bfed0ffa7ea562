// The decisions that several servers share: where one that is made on a server is found by the others.
#ifndef STOWAGE_SERVER_DECISIONS_SHARED_DECISIONS_H_
#define STOWAGE_SERVER_DECISIONS_SHARED_DECISIONS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/decisions/decision.h"
#include "server/entries/entry_keys.h"
#include "server/observe/server_metrics.h"
#include "server/store/redis_client.h"
#include "server/store/redis_keys.h"
#include "solvers/base/stop_token.h"

namespace stowage {

// May lose all or some at any time: every server has what it knows in a store of its own, and tells it
// again (decision_book.h). Thread-safe.
class SharedDecisions {
 public:
  virtual ~SharedDecisions() = default;

  // Those about the key, without what they keep. Not OK: it cannot say.
  virtual absl::StatusOr<std::vector<Decision>> Heads(const PlanKey& key) = 0;

  // Some of them, whole; those that are not there any more, or damaged, are missing. Not OK: as above.
  virtual absl::StatusOr<std::vector<Decision>> Read(const PlanKey& key,
                                                     const std::vector<DecisionId>& ids) = 0;

  // Each counts there from now on, unless one for the same is later. Not OK: some may count.
  virtual absl::Status Tell(const PlanKey& key, const std::vector<Decision>& decisions) = 0;

  // All about the key, whole. Not OK: as above, or there is something of which nobody knows what it is about.
  struct AllOfKey {
    std::vector<Decision> read;
    std::vector<Decision> unreadable;  // what Heads says of them
  };
  virtual absl::StatusOr<AllOfKey> ReadAll(const PlanKey& key) = 0;

  // At most `limit` keys, rising, of those after `after` that something was told about. Looks at all there is: for a
  // backup. Not OK: it cannot say which these are, as CheckHasAll, or nobody waits any more.
  virtual absl::StatusOr<std::vector<PlanKey>> Keys(const std::optional<PlanKey>& after,
                                                    size_t limit, const StopToken& stop) = 0;

  // Leaves a mark of this server, which goes when everything is lost.
  virtual absl::Status Mark() = 0;
  // Fails unless the mark is there still, and all that was told after it. Writes nothing.
  virtual absl::Status CheckHasAll() = 0;
  // Whether the mark is there still, nothing that was told after it may have been lost, and it would be told in the same way.
  virtual absl::StatusOr<bool> IsMarked() = 0;
};

// In a Redis, that of the plans or one of their own (durable_redis.h): a hash for each key, which does not expire, with a field
// for each decision: its stamp and its generation, so that they can be compared there, and the record. One round trip a call.
class RedisDecisions final : public SharedDecisions {
 public:
  // `metrics` outlives this object.
  // With keys, what stands there under none of them is damaged (entry_keys.h).
  RedisDecisions(const std::string& prefix, std::shared_ptr<RedisClient> redis,
                 ServerMetrics* metrics, std::shared_ptr<const EntryKeys> entry_keys = nullptr);

  absl::StatusOr<std::vector<Decision>> Heads(const PlanKey& key) override;
  absl::StatusOr<std::vector<Decision>> Read(const PlanKey& key,
                                             const std::vector<DecisionId>& ids) override;
  absl::Status Tell(const PlanKey& key, const std::vector<Decision>& decisions) override;
  // A round trip for each of them, so that no reply is larger than one.
  absl::StatusOr<AllOfKey> ReadAll(const PlanKey& key) override;
  // By SCAN. O(all keys of the Redis) round trips of a thousand keys; in a cluster of each server once for each part that
  // it has. Not while slots of a cluster are moved: a key that moves is found on neither side.
  absl::StatusOr<std::vector<PlanKey>> Keys(const std::optional<PlanKey>& after, size_t limit,
                                            const StopToken& stop) override;
  absl::Status Mark() override;
  absl::Status CheckHasAll() override;
  absl::StatusOr<bool> IsMarked() override;

 private:
  // Fails unless the part's server has all its keys, the mark among them. Asks for a key, so that a part that has moved is
  // noticed.
  absl::Status CheckPart(int part);
  // Of one field of the key's hash. DATA_LOSS, or UNIMPLEMENTED of another version.
  absl::StatusOr<Decision> Decoded(const PlanKey& key, const std::string& field,
                                   const std::string& value) const;
  absl::StatusOr<RedisReply> Run(const RedisCommand& command);
  // The one reply; failures are counted.
  absl::StatusOr<RedisReply> OnlyReply(const absl::StatusOr<std::vector<RedisReply>>& replies);

  // What the field of the key's hash is sealed as.
  std::string NameOf(const PlanKey& key, const std::string& field) const;

  const std::shared_ptr<const EntryKeys> entry_keys_;
  const RedisKeys keys_;
  const std::string name_;  // of the server, in its marks
  const std::shared_ptr<RedisClient> redis_;
  ServerMetrics* const metrics_;
  // Of Redis, by when the mark was made: a replica that became the primary may have the mark and
  // lack what was told last.
  std::atomic<int64_t> failovers_{0};
  std::mutex mark_mutex_;
  std::string sealed_;  // the mark, under what was the first key then
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_DECISIONS_SHARED_DECISIONS_H_
