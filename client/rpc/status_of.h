// What a call has come to, whether or not it answers with a value. Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_STATUS_OF_H_
#define STOWAGE_CLIENT_RPC_STATUS_OF_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }

template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_STATUS_OF_H_
