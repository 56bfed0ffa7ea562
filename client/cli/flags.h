// The flags of all subcommands; each lists the ones that it takes.
#ifndef STOWAGE_CLIENT_CLI_FLAGS_H_
#define STOWAGE_CLIENT_CLI_FLAGS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/agent/agent_options.h"
#include "client/models/models.h"
#include "client/rpc/plan_connection.h"
#include "client/rpc/server_flags.h"
#include "client/torch/chain_model.h"
#include "client/torch/graph_model.h"
#include "solvers/model/budget.h"
#include "solvers/model/transfer_model.h"

ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(int64_t, batch);
ABSL_DECLARE_FLAG(int64_t, image_size);
ABSL_DECLARE_FLAG(int64_t, classes);
ABSL_DECLARE_FLAG(uint64_t, seed);
ABSL_DECLARE_FLAG(int, threads);
ABSL_DECLARE_FLAG(int, repeats);
ABSL_DECLARE_FLAG(bool, calibrate);
ABSL_DECLARE_FLAG(int, steps);
ABSL_DECLARE_FLAG(std::string, out);
ABSL_DECLARE_FLAG(std::string, profile);
ABSL_DECLARE_FLAG(std::string, budget);
ABSL_DECLARE_FLAG(std::string, budgets);
ABSL_DECLARE_FLAG(std::string, solver);
ABSL_DECLARE_FLAG(int64_t, slots);
ABSL_DECLARE_FLAG(bool, recompute_only);
ABSL_DECLARE_FLAG(absl::Duration, timeout);
ABSL_DECLARE_FLAG(std::string, format);
ABSL_DECLARE_FLAG(bool, graph);
ABSL_DECLARE_FLAG(bool, arena);
ABSL_DECLARE_FLAG(std::string, link);

namespace stowage {

// A reference network and a batch for it, as the flags say. Installs the tracking allocator first.
struct Workload {
  ChainModel model;
  Sample sample;
};
absl::StatusOr<Workload> WorkloadFromFlags();

// The same with the network as a graph, op by op, where --graph says so.
struct AnyWorkload {
  std::variant<ChainModel, GraphModel> model;
  Sample sample;
};
absl::StatusOr<AnyWorkload> AnyWorkloadFromFlags();

// --budgets, split at commas.
absl::StatusOr<std::vector<Budget>> BudgetsFromFlag();

// What an agent is told by the flags of a command that trains, all checked; a server that is away is
// said.
absl::StatusOr<AgentOptions> AgentOptionsFromFlags();

// --link, "GB/s[:latency]": the same both ways at once, to more host memory than is needed. Nothing if it is
// empty, INVALID_ARGUMENT for anything else.
absl::StatusOr<std::optional<TransferModel>> LinkFromFlag();

// --timeout as a deadline from now. INVALID_ARGUMENT unless positive.
absl::StatusOr<CallOptions> CallOptionsFromFlags();

// True for json, false for text; INVALID_ARGUMENT for anything else.
absl::StatusOr<bool> JsonFromFlag();

// "stowage: <what>" on stderr: notices that are no errors.
void Say(const std::string& what);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_FLAGS_H_
