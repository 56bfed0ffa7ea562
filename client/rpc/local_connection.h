// Planning in this process, by the solvers that the server uses. Keeps nothing: no plan is found by
// key (NOT_FOUND), lists are empty, reports UNIMPLEMENTED.
#ifndef STOWAGE_CLIENT_RPC_LOCAL_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_LOCAL_CONNECTION_H_

#include <memory>

#include "client/rpc/plan_connection.h"

namespace stowage {

// Solves on the calling thread; deadline and cancel token reach the solver, which has no deadline
// otherwise.
std::unique_ptr<PlanConnection> MakeLocalConnection();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_LOCAL_CONNECTION_H_
