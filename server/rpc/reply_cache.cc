#include "server/rpc/reply_cache.h"

#include <cstdint>
#include <string>

#include "proto/codec/codec.h"

namespace stowage {
namespace {

// Of a place in both containers, beside the bytes.
constexpr size_t kBookkeeping = 128;

bool IsSame(const std::weak_ptr<const Plan>& a, const std::shared_ptr<const Plan>& b) {
  return !a.owner_before(b) && !b.owner_before(a);
}

}  // namespace

ReplyCache::ReplyCache(Bytes capacity)
    : shard_capacity_(static_cast<size_t>(capacity.value()) / shards_.size()) {}

ReplyCache::Shard& ReplyCache::ShardOf(const Plan* plan) {
  // Addresses of large objects differ little in their last bits.
  return shards_[(reinterpret_cast<uintptr_t>(plan) >> 6) % shards_.size()];
}

grpc::Slice ReplyCache::PlanFields(const std::shared_ptr<const Plan>& plan) {
  Shard& shard = ShardOf(plan.get());
  {
    std::lock_guard<std::mutex> lock(shard.mutex);
    const auto found = shard.written.find(plan.get());
    if (found != shard.written.end() && IsSame(found->second.plan, plan)) {
      return found->second.fields;
    }
  }
  v1::Plan message = ToProto(*plan);
  message.clear_budget_bytes();
  const grpc::Slice fields(message.SerializeAsString());
  Keep(plan, fields);
  return fields;
}

void ReplyCache::Keep(const std::shared_ptr<const Plan>& plan, const grpc::Slice& fields) {
  const size_t charge = fields.size() + kBookkeeping;
  if (charge > shard_capacity_) return;
  Shard& shard = ShardOf(plan.get());
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto [place, fresh] = shard.written.try_emplace(plan.get());
  if (fresh) {
    shard.order.push_back(plan.get());
  } else {
    shard.bytes -= place->second.fields.size() + kBookkeeping;
  }
  place->second = Written{plan, fields};
  shard.bytes += charge;
  while (shard.bytes > shard_capacity_) {
    const auto oldest = shard.written.find(shard.order.front());
    shard.bytes -= oldest->second.fields.size() + kBookkeeping;
    shard.written.erase(oldest);
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
