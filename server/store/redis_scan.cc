#include "server/store/redis_scan.h"

#include <cstdint>
#include <iterator>

namespace stowage {

absl::Status ScanAt(const std::string& key, const std::string& pattern, RedisClient* redis,
                    const ScannedPage& page) {
  const int64_t failovers = redis->failovers();
  std::string cursor = "0";
  do {
    const auto replies = redis->RunAt(key, {{"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}});
    if (!replies.ok()) return replies.status();
    const RedisReply& scanned = replies->front();
    if (absl::Status status = StatusOf(scanned); !status.ok()) return status;
    if (scanned.kind != RedisReply::Kind::kList || scanned.list.size() != 2) {
      return absl::UnavailableError("Redis sends no page of keys");
    }
    cursor = scanned.list[0].text;
    if (absl::Status status = page(scanned.list[1].list); !status.ok()) return status;
  } while (cursor != "0");
  if (redis->failovers() == failovers) return absl::OkStatus();
  return absl::UnavailableError("another Redis has the keys since they were walked");
}

void LeastKeys::Add(const PlanKey& key) {
  if (after_ && !(*after_ < key)) return;
  least_.insert(key);
  if (least_.size() > limit_) least_.erase(std::prev(least_.end()));
}

}  // namespace stowage
