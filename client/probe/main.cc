// stowage_probe: whether a server serves, as an exit code.
#include <iostream>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/rpc/health_probe.h"
#include "client/rpc/server_flags.h"
#include "solvers/base/flag_parser.h"
#include "solvers/model/field_error.h"

ABSL_FLAG(std::string, service, "stowage.v1.PlanService",
          "service that must be serving; stowage.v1.PlanService/ready is not while the server "
          "drains; empty for the server as a whole");
ABSL_FLAG(absl::Duration, timeout, absl::Seconds(2), "how long all of it may take");

namespace stowage {
namespace {

enum ExitCode : int { kServing = 0, kNotServing = 1, kUsage = 2 };

absl::Status Probe() {
  const GrpcOptions server = ServerFromFlags();
  if (server.address.empty()) return FieldError("--server", "\"\"", "must name a server");
  const absl::Duration timeout = absl::GetFlag(FLAGS_timeout);
  if (timeout <= absl::ZeroDuration() || timeout > absl::Hours(1)) {
    return FieldError("--timeout", absl::FormatDuration(timeout), "must be in (0, 1h]");
  }
  return ProbeHealth(server, absl::GetFlag(FLAGS_service), absl::ToChronoNanoseconds(timeout));
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = WithServerFlags({"service", "timeout"});
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (help.ok() && *help) {
    std::cout << "usage: stowage_probe --server=HOST:PORT [--flag=value ...]\n\n"
                 "Exit codes: 0 serving, 1 not serving or not to be reached, 2 bad flags.\n\n"
              << FlagHelp(flags);
    return kServing;
  }
  const absl::Status status = help.ok() ? Probe() : help.status();
  if (status.ok()) return kServing;
  std::cerr << "stowage_probe: " << status.message() << "\n";
  return absl::IsInvalidArgument(status) ? kUsage : kNotServing;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
