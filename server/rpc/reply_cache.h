// Plans as bytes of the contract, kept for as long as they are handed out: a hit is mostly the
// writing of its answer, and that is the same each time but for the budget that was asked with.
#ifndef STOWAGE_SERVER_RPC_REPLY_CACHE_H_
#define STOWAGE_SERVER_RPC_REPLY_CACHE_H_

#include <grpcpp/support/slice.h>

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "solvers/model/digest.h"
#include "solvers/model/units.h"
#include "solvers/schedule/plan.h"

namespace stowage {

struct WrittenPlan {
  grpc::Slice fields;  // of v1::Plan but budget_bytes
  grpc::Slice basic;   // the same of PLAN_VIEW_BASIC
  Digest digest;       // of its schedule
};

// Thread-safe.
class ReplyCache {
 public:
  // Holds at most `capacity` bytes, and of plans that are gone about as many as of those that are
  // not: they go as others come.
  explicit ReplyCache(Bytes capacity);

  // The slice shares its bytes. O(1) unless the plan is not here, else O(size of the plan).
  WrittenPlan Write(const std::shared_ptr<const Plan>& plan);

  Bytes held() const;

 private:
  static constexpr size_t kShards = 8;

  struct Kept {
    std::weak_ptr<const Plan> plan;  // another plan may live at the same address one day
    WrittenPlan written;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<const Plan*, Kept> kept;
    std::deque<const Plan*> order;
    size_t bytes = 0;
  };

  Shard& ShardOf(const Plan* plan);
  void Keep(const std::shared_ptr<const Plan>& plan, const WrittenPlan& written);
  // Looks at the two places that were looked at longest ago, so that they are all seen in time.
  static void DropDead(Shard* shard);
  static void Drop(Shard* shard, std::unordered_map<const Plan*, Kept>::iterator kept);

  const size_t shard_capacity_;
  std::array<Shard, kShards> shards_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_REPLY_CACHE_H_
