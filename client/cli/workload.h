// What a command that measures or trains works on: a network and a batch for it, as the flags say.
#ifndef STOWAGE_CLIENT_CLI_WORKLOAD_H_
#define STOWAGE_CLIENT_CLI_WORKLOAD_H_

#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/batch.h"
#include "client/agent/trained_model.h"
#include "client/models/scripted_network.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"

namespace stowage {

// A reference network, as a graph, op by op, where --graph says so; or the user's own (--script), which is one.
struct Workload {
  std::string name;  // for people: of a file, its path
  std::variant<ChainModel, GraphModel, ScriptedNetwork> model;
  Batch batch;
  std::string loss;

  bool is_graph() const { return !std::holds_alternative<ChainModel>(model); }
  bool is_script() const { return std::holds_alternative<ScriptedNetwork>(model); }
};

// As the flags say, its tensors on `device`. Installs the tracking allocator first. Says on standard error
// what a script is. Errors: those of CheckScriptFlags, of making the network, and INVALID_ARGUMENT for
// --threads.
absl::StatusOr<Workload> WorkloadFromFlags(c10::Device device);

// The workload must outlive it. Its plain steps are those of the network itself: of a script, of the module
// that was loaded.
std::unique_ptr<TrainedModel> TrainedModelOf(const Workload& workload);

// "2x3x64x64 float32", by input.
std::vector<std::string> InputTexts(const Batch& batch);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_WORKLOAD_H_
