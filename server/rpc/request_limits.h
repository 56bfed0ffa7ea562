// What a request may weigh on this server, checked by count before anything is converted, and what
// an answer may.
#ifndef STOWAGE_SERVER_RPC_REQUEST_LIMITS_H_
#define STOWAGE_SERVER_RPC_REQUEST_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

inline constexpr int kMaxKeysPerRequest = 16;
inline constexpr size_t kMaxJobBytes = 128;
// Of all stages together: small on the wire, some bytes each in memory.
inline constexpr int64_t kMaxSavedTensors = 200'000;

struct RequestLimits {
  int64_t max_message_bytes = int64_t{16} << 20;  // of a request and of an answer
  int64_t max_stages = 10000;                     // at most Chain::kMaxStages
  int64_t max_vertices = 20000;                   // at most Graph::kMaxVertices
};

// OK, or INVALID_ARGUMENT made by FieldError that names the limit.
absl::Status CheckLimits(const v1::GetPlanRequest& request);
// Of the name that a job gives itself.
absl::Status CheckJob(const std::string& job);
// Of the profile of a request.
absl::Status CheckLimits(const v1::Profile& profile, const RequestLimits& limits);

// OK, or RESOURCE_EXHAUSTED, RESPONSE_TOO_LARGE that names the limit. Waiting does not help.
absl::Status CheckSize(size_t response_bytes, const RequestLimits& limits);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_REQUEST_LIMITS_H_
