// Where plans come from: a server, this process, or one behind the other. The point at which users
// and tests put a mock (mock_plan_connection.h).
//
// Value types only: nothing of gRPC or protobuf shows. Errors, beside those of each call:
//   INVALID_ARGUMENT    made by FieldError where a field is to blame
//   RESOURCE_EXHAUSTED  a message over a limit (named), or a busy server (GetRetryDelay in
//                       proto/codec/grpc_status.h)
//   DEADLINE_EXCEEDED, CANCELLED, UNAVAILABLE (the message holds a hint)
// All connections are thread-safe, and no call outlasts its deadline by more than what a thread
// needs to wake up.
#ifndef STOWAGE_CLIENT_RPC_PLAN_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_PLAN_CONNECTION_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/plan/plan.h"
#include "solvers/solver.h"

namespace stowage {

struct CallOptions {
  using Clock = std::chrono::steady_clock;

  // The latest moment to answer; max() leaves it to the connection's own default.
  Clock::time_point deadline = Clock::time_point::max();

  static CallOptions Within(Clock::duration timeout) { return {Clock::now() + timeout}; }
  bool has_deadline() const { return deadline != Clock::time_point::max(); }
};

enum class PlanSource {
  kCache,   // of the server
  kSolved,  // by the server, for this call
  kShared,  // by the server, for an identical call that came earlier
  kLocal,   // in this process
};

// "cache", "solved", "shared", "local".
const char* ToString(PlanSource source);

struct PlanReply {
  Plan plan;
  PlanKey key;
  PlanSource source = PlanSource::kLocal;
};

struct Capabilities {
  std::string server_version;
  int32_t key_encoding_version = 0;
  std::vector<SolverInfo> solvers;
  Bytes max_message;
  int64_t max_stages = 0;
  int64_t max_vertices = 0;
  std::vector<std::string> implemented_rpcs;
};

class PlanConnection {
 public:
  virtual ~PlanConnection() = default;

  // The cached plan of the first of 1 to 16 keys that has one within the budget; NOT_FOUND if none
  // has.
  virtual absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                            const CallOptions& options) = 0;

  // A plan from the cache or solved now. A budget that nothing fits is a plan too: see
  // Plan::status. The tenant of `key_options` counts in process only: a server takes it from the
  // caller's identity.
  virtual absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                                const KeyOptions& key_options,
                                                const CallOptions& options) = 0;

  // Limits, solvers and versions.
  virtual absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) = 0;

  // For messages: "stowaged at unix:/run/stowage.sock", "local planning".
  virtual std::string name() const = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_PLAN_CONNECTION_H_
