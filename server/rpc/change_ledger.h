// Which changes have been made: one that is asked for again, for its answer was lost, is not made again.
#ifndef STOWAGE_SERVER_RPC_CHANGE_LEDGER_H_
#define STOWAGE_SERVER_RPC_CHANGE_LEDGER_H_

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"

namespace stowage {

// Of this process, for as long as it lives. Thread-safe.
class ChangeLedger {
 public:
  // Remembers that many changes, the latest.
  explicit ChangeLedger(size_t capacity) : capacity_(capacity) {}

  // What `make` says, or has said: it is called unless the change of that id, of that caller, is made, and one
  // that is being made is waited for. A change that fails is not remembered: it was not made. INVALID_ARGUMENT
  // made by FieldError for "request_id": another change had the id. `change` tells changes apart. An empty id is
  // no id.
  absl::StatusOr<bool> Once(const std::string& caller, const std::string& request_id,
                            const std::string& change,
                            const std::function<absl::StatusOr<bool>()>& make);

 private:
  struct Change {
    std::string what;
    std::optional<bool> said;  // nothing while it is being made
  };

  // The change, which the calling thread has to make; or what was said of it.
  absl::StatusOr<std::optional<bool>> Find(const std::string& id, const std::string& request_id,
                                           const std::string& change);
  // `latest` holds the id alone, and is taken where there is something to remember.
  void End(std::optional<bool> said, std::list<std::string>* latest) noexcept;

  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::unordered_map<std::string, Change> changes_;
  std::list<std::string> made_;  // ids, the latest last
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_CHANGE_LEDGER_H_
