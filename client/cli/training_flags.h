// What the flags of the commands that measure and train (training_commands.h) make.
#ifndef STOWAGE_CLIENT_CLI_TRAINING_FLAGS_H_
#define STOWAGE_CLIENT_CLI_TRAINING_FLAGS_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/agent_options.h"
#include "proto/otlp/otlp_exporter.h"

namespace stowage {

// --repeats. INVALID_ARGUMENT unless positive.
absl::Status CheckRepeats();

// What an agent is told by the flags of a command that trains, all checked; a server that is away is
// said.
absl::StatusOr<AgentOptions> AgentOptionsFromFlags();

// Of the agent's spans, to the collector that $OTEL_EXPORTER_OTLP_ENDPOINT names; null where it names
// none, or one that needs TLS.
std::unique_ptr<OtlpExporter> ExporterFromEnvironment();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRAINING_FLAGS_H_
