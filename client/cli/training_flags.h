// What the flags of the commands that measure and train (training_commands.h) make.
#ifndef STOWAGE_CLIENT_CLI_TRAINING_FLAGS_H_
#define STOWAGE_CLIENT_CLI_TRAINING_FLAGS_H_

#include <memory>
#include <optional>
#include <variant>

#include "absl/status/statusor.h"
#include "client/agent/agent_options.h"
#include "client/agent/trained_model.h"
#include "client/models/models.h"
#include "client/torch/chain_model.h"
#include "client/torch/graph_model.h"
#include "client/torch/simulated_device.h"
#include "solvers/model/transfer_model.h"

namespace stowage {

// A reference network, as a graph, op by op, where --graph says so, and a batch for it.
struct Workload {
  std::variant<ChainModel, GraphModel> model;
  Sample sample;
};
// As the flags say. Installs the tracking allocator first.
absl::StatusOr<Workload> WorkloadFromFlags();
// The workload must outlive it.
std::unique_ptr<TrainedModel> TrainedModelOf(const Workload& workload);

// --repeats. INVALID_ARGUMENT unless positive.
absl::Status CheckRepeats();

// What an agent is told by the flags of a command that trains, all checked; a server that is away is
// said.
absl::StatusOr<AgentOptions> AgentOptionsFromFlags();

// --link, "GB/s[:latency]": the same both ways at once, to more host memory than is needed. Nothing if it is
// empty, INVALID_ARGUMENT for anything else.
absl::StatusOr<std::optional<TransferModel>> LinkFromFlag();
// A device that has it; null without one. After the allocator was installed.
absl::StatusOr<std::unique_ptr<SimulatedDevice>> DeviceWith(
    const std::optional<TransferModel>& link);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRAINING_FLAGS_H_
