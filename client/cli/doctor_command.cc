#include <iostream>

#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/say.h"
#include "client/rpc/doctor.h"
#include "client/rpc/server_flags.h"

namespace stowage {
namespace {

int Run() {
  const GrpcOptions server = ServerFromFlags();
  if (server.address.empty()) {
    Say("nothing to look at: --server is empty, plans are made in this process");
    return kExitUsage;
  }
  const Diagnosis diagnosis = Diagnose(server);
  std::cout << DiagnosisText(diagnosis);
  return diagnosis.healthy() ? kExitOk : kExitFailure;
}

}  // namespace

Command DoctorCommand() {
  return {"doctor", "find out why a server cannot be used", WithServerFlags({}), Run};
}

}  // namespace stowage
