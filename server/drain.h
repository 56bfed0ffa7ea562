// The end of stowaged: signals, and what a drain does.
#ifndef STOWAGE_SERVER_DRAIN_H_
#define STOWAGE_SERVER_DRAIN_H_

#include <signal.h>

#include <atomic>
#include <chrono>
#include <string>

#include "server/observe/log.h"
#include "server/rpc/rpc_server.h"
#include "server/service/planning_service.h"

namespace stowage {

// The signals that end the service. Blocked before gRPC starts its threads, which inherit the mask:
// only sigwait sees them.
class StopSignals {
 public:
  StopSignals();

  // "SIGTERM" or "SIGINT", when one comes.
  std::string Wait() const;

  // Ends the process at once if one more comes before `done`.
  void EndOnNext(const std::atomic<bool>& done) const;

 private:
  sigset_t set_;
};

// Waits for a signal, then drains.
void DrainOnSignal(const StopSignals& signals, std::chrono::nanoseconds timeout, RpcServer* server,
                   PlanningService* planning, Log* log);

}  // namespace stowage

#endif  // STOWAGE_SERVER_DRAIN_H_
