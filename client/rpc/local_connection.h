// Planning in this process, by the solvers that the server uses. Keeps no cache: GetPlan answers
// NOT_FOUND.
#ifndef STOWAGE_CLIENT_RPC_LOCAL_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_LOCAL_CONNECTION_H_

#include <memory>

#include "client/rpc/plan_connection.h"

namespace stowage {

// ComputePlan solves on the calling thread; CallOptions::deadline reaches the solver, which has
// none otherwise.
std::unique_ptr<PlanConnection> MakeLocalConnection();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_LOCAL_CONNECTION_H_
