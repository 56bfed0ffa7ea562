// Which plan a job trained by, as a short text: for the job's own checkpoint, to come back to the same
// plan with Agent::Resume.
#ifndef STOWAGE_CLIENT_AGENT_PLAN_TOKEN_H_
#define STOWAGE_CLIENT_AGENT_PLAN_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/agent/device_link.h"
#include "solvers/model/canonical.h"
#include "solvers/model/digest.h"
#include "solvers/model/units.h"

namespace stowage {

struct PlanToken {
  PlanKey key;
  Digest plan;                         // ScheduleDigest
  Bytes budget;                        // that it was planned for
  Bytes host_memory = kAllHostMemory;  // that plans might use
};

// "stowage-plan-1:<encoding version>:<key>:<plan>:<bytes>", digests in hexadecimal; where host memory is limited ":<bytes>" of it
// behind that, which versions up to 0.1.7 refuse.
std::string ToString(const PlanToken& token);

// INVALID_ARGUMENT made by FieldError for anything that ToString does not write.
absl::StatusOr<PlanToken> ParsePlanToken(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_PLAN_TOKEN_H_
