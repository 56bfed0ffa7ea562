// What commands that ask a server for what it keeps begin with, and how they say its errors.
#ifndef STOWAGE_CLIENT_CLI_SERVER_SESSION_H_
#define STOWAGE_CLIENT_CLI_SERVER_SESSION_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

struct ServerSession {
  std::unique_ptr<PlanConnection> connection;
  CallOptions call;  // all calls of the command share its deadline
};

// By the flags of a server and --timeout: behind retries, and with no plans of this process in its place.
// INVALID_ARGUMENT without --server.
absl::StatusOr<ServerSession> OpenServerSession();

// Fail (exit_code.h), and where a role is too low, whom the server takes the caller for.
int FailAs(const absl::Status& status, ServerSession* session);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_SERVER_SESSION_H_
