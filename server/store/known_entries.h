// Which entries that somebody holds are what a store has: by their generation and their seal, some 50
// bytes, where an entry has a hundred thousand.
#ifndef STOWAGE_SERVER_STORE_KNOWN_ENTRIES_H_
#define STOWAGE_SERVER_STORE_KNOWN_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/hash/hash.h"
#include "server/entries/entry_codec.h"
#include "server/entries/plan_entry.h"
#include "solvers/model/canonical.h"

namespace stowage {

// Thread-safe. O(1) a call. Remembers the last `most` and up to as many before them.
class KnownEntries {
 public:
  struct Known {
    std::shared_ptr<const PlanEntry> entry;
    EntryStamp stamp;
  };

  explicit KnownEntries(size_t most = 8192) : most_(most) {}

  // From now on, of the key, it is this one that is known.
  void Remember(const PlanKey& key, EntryStamp stamp,
                const std::shared_ptr<const PlanEntry>& entry) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (latest_.size() >= most_) {
      earlier_ = std::move(latest_);
      latest_.clear();
    }
    latest_[key] = Remembered{entry, std::move(stamp)};
  }

  // Nothing, too, where nobody holds it any more.
  std::optional<Known> Find(const PlanKey& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Half* const half : {&latest_, &earlier_}) {
      const auto found = half->find(key);
      if (found == half->end()) continue;
      std::shared_ptr<const PlanEntry> entry = found->second.entry.lock();
      if (entry) return Known{std::move(entry), found->second.stamp};
      half->erase(found);
    }
    return std::nullopt;
  }

 private:
  struct Remembered {
    std::weak_ptr<const PlanEntry> entry;
    EntryStamp stamp;
  };
  using Half = std::unordered_map<PlanKey, Remembered, absl::Hash<PlanKey>>;

  const size_t most_;
  std::mutex mutex_;
  Half latest_, earlier_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_KNOWN_ENTRIES_H_
