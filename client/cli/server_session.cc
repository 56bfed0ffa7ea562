#include "client/cli/server_session.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/plan_flags.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/retrying_connection.h"
#include "client/rpc/server_flags.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status WithRole(const absl::Status& status, ServerSession* session) {
  if (!absl::IsPermissionDenied(status)) return status;
  const auto capabilities = session->connection->GetCapabilities(session->call);
  if (!capabilities.ok()) return status;
  const std::string who = capabilities->identity.empty()
                              ? "an unnamed caller"
                              : absl::StrCat("'", capabilities->identity, "'");
  return absl::PermissionDeniedError(absl::StrCat(status.message(), "; ",
                                                  session->connection->name(), " takes you for ",
                                                  who, ", role ", capabilities->role));
}

}  // namespace

absl::StatusOr<ServerSession> OpenServerSession() {
  const GrpcOptions server = ServerFromFlags();
  if (server.address.empty()) {
    return FieldError("--server", "\"\"",
                      "must name a stowaged: this process keeps neither plans nor decisions");
  }
  absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  return ServerSession{MakeRetryingConnection(MakeGrpcConnection(server)), *std::move(call)};
}

int FailAs(const absl::Status& status, ServerSession* session) {
  return Fail(WithRole(status, session));
}

}  // namespace stowage
