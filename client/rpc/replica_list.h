// The servers that a name stands for, looked up anew now and then by a thread of its own: a resolver that is slow
// holds up no call, once there is a list. Internal to client/rpc. Thread-safe.
#ifndef STOWAGE_CLIENT_RPC_REPLICA_LIST_H_
#define STOWAGE_CLIENT_RPC_REPLICA_LIST_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_values.h"
#include "client/rpc/routed_connection.h"

namespace stowage {

class ReplicaList {
 public:
  using Clock = CallOptions::Clock;
  // At least one address, or an error. Called on another thread, one at a time, and perhaps still when
  // the list is no more.
  using Lookup = std::function<absl::StatusOr<std::vector<std::string>>()>;

  // `name` is for messages. A list serves for `refresh`; then the next call has it looked up again, and still gets the old one. So it
  // does while lookups fail.
  ReplicaList(std::string name, Lookup lookup, Clock::duration refresh);
  ReplicaList(const ReplicaList&) = delete;
  ReplicaList& operator=(const ReplicaList&) = delete;

  // The same object until the addresses are others. Without a list yet it waits for at most `patience`: UNAVAILABLE after
  // it, the error of the lookup, CANCELLED.
  absl::StatusOr<ReplicaAddresses> Get(Clock::duration patience, const CancelToken* cancel);

 private:
  struct State;

  // Shared with the thread, which nobody waits for: a resolver may take as long as it likes.
  const std::shared_ptr<State> state_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_REPLICA_LIST_H_
