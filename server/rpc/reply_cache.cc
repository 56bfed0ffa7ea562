#include "server/rpc/reply_cache.h"

#include <cstdint>
#include <string>

#include "proto/codec/codec.h"

namespace stowage {
namespace {

// Of a place in both containers, beside the bytes.
constexpr size_t kBookkeeping = 160;

size_t ChargeOf(const WrittenPlan& written) {
  return written.fields.size() + written.basic.size() + kBookkeeping;
}

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
  WrittenPlan written;
  written.fields = grpc::Slice(message.SerializeAsString());
  written.digest = DigestOf(message);
  message.clear_schedule();
  message.clear_explanation();
  written.basic = grpc::Slice(message.SerializeAsString());
  Keep(plan, written);
  return written;
}

void ReplyCache::Keep(const std::shared_ptr<const Plan>& plan, const WrittenPlan& written) {
  const size_t charge = ChargeOf(written);
  if (charge > shard_capacity_) return;
  Shard& shard = ShardOf(plan.get());
  std::lock_guard<std::mutex> lock(shard.mutex);
  auto [place, fresh] = shard.kept.try_emplace(plan.get());
  if (fresh) {
    shard.order.push_back(plan.get());
  } else {
    shard.bytes -= ChargeOf(place->second.written);
  }
  place->second = Kept{plan, written};
  shard.bytes += charge;
  DropDead(&shard);
  while (shard.bytes > shard_capacity_) {
    Drop(&shard, shard.kept.find(shard.order.front()));
    shard.order.pop_front();
  }
}

void ReplyCache::DropDead(Shard* shard) {
  for (int i = 0; i < 2 && !shard->order.empty(); ++i) {
    const Plan* const plan = shard->order.front();
    shard->order.pop_front();
    const auto kept = shard->kept.find(plan);
    if (kept->second.plan.expired()) {
      Drop(shard, kept);
    } else {
      shard->order.push_back(plan);
    }
  }
}

void ReplyCache::Drop(Shard* shard, std::unordered_map<const Plan*, Kept>::iterator kept) {
  shard->bytes -= ChargeOf(kept->second.written);
  shard->kept.erase(kept);
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
