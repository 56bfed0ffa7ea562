// All keys of a Redis that match a pattern, page by page, and the first of them.
#ifndef STOWAGE_SERVER_STORE_REDIS_SCAN_H_
#define STOWAGE_SERVER_STORE_REDIS_SCAN_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/store/redis_client.h"
#include "solvers/model/canonical.h"

namespace stowage {

// Told some names at a time, of which one may come twice. Not OK: the scan ends with that.
using ScannedPage = std::function<absl::Status(const std::vector<RedisReply>& names)>;

// Every name that is there from the beginning to the end, at the server that has `key`. The errors of RunAt, and of StatusOf where the
// server refuses SCAN; UNAVAILABLE, too, where another server has had the keys since it began: some may have been passed over. O(all keys there), a thousand a round
// trip. `page` must end what goes on for too long: a server that is broken may never come to an end.
absl::Status ScanAt(const std::string& key, const std::string& pattern, RedisClient* redis,
                    const ScannedPage& page);

// The first `limit` of the keys after `after`, in rising order.
class LeastKeys {
 public:
  LeastKeys(const std::optional<PlanKey>& after, size_t limit) : after_(after), limit_(limit) {}

  // O(log limit).
  void Add(const PlanKey& key);
  std::vector<PlanKey> keys() const { return {least_.begin(), least_.end()}; }

 private:
  const std::optional<PlanKey> after_;
  const size_t limit_;
  std::set<PlanKey> least_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_SCAN_H_
