// How a call reaches a solver in this process.
#ifndef STOWAGE_CLIENT_RPC_CALL_STOP_H_
#define STOWAGE_CLIENT_RPC_CALL_STOP_H_

#include "client/rpc/cancel_token.h"
#include "client/rpc/plan_values.h"
#include "solvers/base/worker_pool.h"
#include "solvers/model/canonical.h"
#include "solvers/planner.h"
#include "solvers/solver.h"

namespace stowage {

// A stop token that the call's deadline and cancel token end.
class CallStop {
 public:
  // max() is a deadline like any other, one that does not pass.
  explicit CallStop(const CallOptions& options)
      : stop_(options.deadline), watch_(options.cancel.get(), [this] { stop_.RequestStop(); }) {}

  PlanOptions OptionsFor(const KeyOptions& key_options) const {
    PlanOptions options;
    options.solver = key_options.solver;
    options.solve.slots = key_options.slots;
    options.solve.stop = &stop_;
    options.solve.threads = WorkerPool::ThreadsThereAre();
    options.recompute_only = key_options.recompute_only;
    return options;
  }

 private:
  StopToken stop_;
  const CancelToken::Watch watch_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_CALL_STOP_H_
