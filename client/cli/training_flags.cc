#include "client/cli/training_flags.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <variant>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"
#include "client/cli/training_commands.h"
#include "client/rpc/server_flags.h"
#include "solvers/base/version.h"
#include "solvers/model/field_error.h"

namespace stowage {

absl::Status CheckRepeats() {
  const int repeats = absl::GetFlag(FLAGS_repeats);
  return repeats >= 1 ? absl::OkStatus() : FieldError("--repeats", repeats, "must be >= 1");
}

absl::StatusOr<AgentOptions> AgentOptionsFromFlags() {
  absl::Status status = CheckRepeats();
  if (status.ok()) status = CheckSolverFlag();
  if (!status.ok()) return status;
  const absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  AgentOptions options;
  options.server = ServerFromFlags();
  options.plan_timeout = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_timeout));
  options.profile.repeats = absl::GetFlag(FLAGS_repeats);
  options.plan.solver = absl::GetFlag(FLAGS_solver);
  options.plan.slots = absl::GetFlag(FLAGS_slots);
  // What a plan does is to be seen as it is, not mended.
  options.out_of_memory.tries = 0;
  options.drift.replans = 0;
  if (absl::GetFlag(FLAGS_arena)) options.arena = ArenaOptions();
  options.measure_steps = !absl::GetFlag(FLAGS_trace).empty();
  options.on_event = [](const AgentEvent& event) {
    const bool said = std::holds_alternative<FellBackEvent>(event) ||
                      std::holds_alternative<ArenaEvent>(event) ||
                      std::holds_alternative<OutOfMemoryEvent>(event);
    if (said) Say(ToString(event));
  };
  return options;
}

std::unique_ptr<OtlpExporter> ExporterFromEnvironment() {
  const char* const endpoint = std::getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (endpoint == nullptr || ParseOtlpEndpoint(endpoint).target.empty()) return nullptr;
  OtlpOptions options;
  options.endpoint = endpoint;
  if (const char* const roots = std::getenv("OTEL_EXPORTER_OTLP_CERTIFICATE")) {
    std::ifstream file(roots, std::ios::binary);
    options.root_certificates.assign(std::istreambuf_iterator<char>(file), {});
    if (!file)
      Say(absl::StrCat("no traces are sent: OTEL_EXPORTER_OTLP_CERTIFICATE=", roots,
                       " cannot be read"));
    if (!file) return nullptr;
  }
  options.service_name = "stowage";
  options.service_version = kVersion;
  return std::make_unique<OtlpExporter>(options);
}

}  // namespace stowage
