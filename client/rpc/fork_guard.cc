#include "client/rpc/fork_guard.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace stowage {
namespace {

std::atomic<pid_t> first_process{0};

}  // namespace

bool InForkedChild() {
  pid_t expected = 0;
  const pid_t self = getpid();
  return !first_process.compare_exchange_strong(expected, self) && expected != self;
}

absl::Status ForkedChildError() {
  return absl::FailedPreconditionError(
      "this process was forked from one that had used gRPC already: open connections after "
      "forking");
}

}  // namespace stowage
