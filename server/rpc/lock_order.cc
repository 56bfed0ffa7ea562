#include "server/rpc/lock_order.h"

#include "absl/synchronization/mutex.h"

namespace stowage {

void LeaveLockOrderUnchecked() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
}

}  // namespace stowage
