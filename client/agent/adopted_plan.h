// A plan as a job got it.
#ifndef STOWAGE_CLIENT_AGENT_ADOPTED_PLAN_H_
#define STOWAGE_CLIENT_AGENT_ADOPTED_PLAN_H_

#include "client/rpc/plan_values.h"
#include "solvers/model/canonical.h"
#include "solvers/model/digest.h"
#include "solvers/model/units.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// Adopted if plan.status is kFound; otherwise the answer that there is none.
struct AdoptedPlan {
  Plan plan;
  PlanKey key;
  Digest digest;  // of plan.schedule
  PlanSource source = PlanSource::kLocal;
  // A profile with times was asked for; a cached plan needs only the bytes.
  bool profiled = false;
  Nanos request_time;  // what the requests took, profiling not counted
  // Cached for a larger shape that this agent has planned for before: what its steps take is not
  // reported.
  bool for_larger = false;
  // The server would like a fresh profile: Agent::Refresh sends one. If that is left to the steps, they do so in
  // time (AgentOptions::wanted_profile_every).
  bool profile_wanted = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_ADOPTED_PLAN_H_
