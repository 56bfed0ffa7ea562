#include "server/rpc/reply_cache.h"

#include <cstdint>
#include <string>

#include "proto/codec/codec.h"

namespace stowage {
namespace {

// Of a place in both containers, beside the bytes.
constexpr size_t kBookkeeping = 160;

bool IsSame(const std::weak_ptr<const Plan>& a, const std::shared_ptr<const Plan>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

ReplyCache::ReplyCache(Bytes capacity)
    : shard_capacity_(static_cast<size_t>(capacity.value()) / kShards) {}

ReplyCache::Shard& ReplyCache::ShardOf(const Plan* plan) {
  // Which bits of addresses differ is the allocator's business: all of them count.
  const uint64_t mixed = reinterpret_cast<uintptr_t>(plan) * uint64_t{0x9e3779b97f4a7c15};
  return shards_[(mixed >> 32) % kShards];
}

WrittenPlan ReplyCache::Write(const std::shared_ptr<const Plan>& plan) {
  Shard& shard = ShardOf(plan.get());
  {
    std::lock_guard<std::mutex> lock(shard.mutex);
    const auto found = shard.kept.find(plan.get());
    if (found != shard.kept.end() && IsSame(found->second.plan, plan)) {
      return found->second.written;
    }
  }
  v1::Plan message = ToProto(*plan);
  message.clear_budget_bytes();
  const WrittenPlan written{grpc::Slice(message.SerializeAsString()), DigestOf(message)};
  Keep(plan, written);
  return written;
}

void ReplyCache::Keep(const std::shared_ptr<const Plan>& plan, const WrittenPlan& written) {
  const size_t charge = written.fields.size() + kBookkeeping;
  if (charge > shard_capacity_) return;
  Shard& shard = ShardOf(plan.get());
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto [place, fresh] = shard.kept.try_emplace(plan.get());
  if (fresh) {
    shard.order.push_back(plan.get());
  } else {
    shard.bytes -= place->second.written.fields.size() + kBookkeeping;
  }
  place->second = Kept{plan, written};
  shard.bytes += charge;
  while (shard.bytes > shard_capacity_) {
    const auto oldest = shard.kept.find(shard.order.front());
    shard.bytes -= oldest->second.written.fields.size() + kBookkeeping;
    shard.kept.erase(oldest);
    shard.order.pop_front();
  }
}

Bytes ReplyCache::held() const {
  size_t bytes = 0;
  for (const Shard& shard : shards_) {
    std::lock_guard<std::mutex> lock(shard.mutex);
    bytes += shard.bytes;
  }
  return Bytes(static_cast<int64_t>(bytes));
}

}  // namespace stowage
