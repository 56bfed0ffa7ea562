// gRPC does not outlive a fork. Internal to client/rpc. Takes no lock; thread-safe.
#ifndef STOWAGE_CLIENT_RPC_FORK_GUARD_H_
#define STOWAGE_CLIENT_RPC_FORK_GUARD_H_

#include "absl/status/status.h"

namespace stowage {

// Whether this process was forked from the one that asked first. Threads and locks of that one do not
// exist here, or are held by nobody: whichever connection is used.
bool InForkedChild();

// FAILED_PRECONDITION, for a call there.
absl::Status ForkedChildError();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_FORK_GUARD_H_
