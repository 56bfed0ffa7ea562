// What an agent did and why, as it happens: for logs and figures.
#ifndef STOWAGE_CLIENT_AGENT_AGENT_EVENT_H_
#define STOWAGE_CLIENT_AGENT_AGENT_EVENT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "client/agent/device_budget.h"
#include "client/rpc/plan_values.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"
#include "solvers/model/digest.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// `batch` is BatchSignature::text() of the batch that it is about.

// The device's memory was divided: the sum.
struct BudgetSharedEvent {
  DeviceBudget budget;
};

struct ProfileTakenEvent {
  std::string batch;
  CostSource costs = CostSource::kUnspecified;  // kBytesOnly, or kMeasured with times
  Nanos time;
  bool from_shapes = false;  // the structure; nothing was run
  std::string not_shapes;    // why shapes did not do, where something was run for it
};

// A cached plan was found by key: nothing was timed for it.
struct CacheHitEvent {
  std::string batch;
  PlanKey key;
  bool for_larger = false;  // of a larger shape
  Nanos request_time;
};

// There was none, and a plan was asked for with a profile. Not always one that fits: see status.
struct PlannedEvent {
  std::string batch;
  PlanSource source = PlanSource::kLocal;
  PlanStatus status = PlanStatus::kNotFound;
  Bytes budget;
  Bytes least_budget;  // where status is kProvenInfeasible
  std::string solver;
  Nanos request_time;
};

// The evaluator accepted it, and the next steps go by it.
struct AdoptedEvent {
  std::string batch;
  PlanKey key;
  Digest plan;
  int64_t revision = 1;
  Bytes budget;
  Nanos makespan;
  Bytes peak;
  int recomputed_forwards = 0;
  Bytes offloaded;   // to host memory in a step
  Bytes prefetched;  // from there
};

// The server is away, busy or slower than planning here: this process plans. Once.
struct FellBackEvent {
  std::string words;
};

// The later, the more pressing. Steps go on by the plan that there is but for the last three.
// In the order in which they press. kPlannedAlone: one of several ranks has planned for a shape that it alone met.
enum class ReplanReason {
  kProfileWanted,
  kPlannedAlone,
  kTime,
  kPeak,
  kOutOfMemory,
  kHostMemory,
  kImmovable
};
// "profile wanted", "planned by one rank alone", "step time", "peak", "out of memory", "out of host memory", "cannot move".
const char* ToString(ReplanReason reason);
// Whether steps by the plan that there is fail.
inline bool StopsSteps(ReplanReason reason) { return reason >= ReplanReason::kOutOfMemory; }

// The next step begins with making another plan.
struct ReplanEvent {
  std::string batch;
  ReplanReason reason = ReplanReason::kTime;
  std::string words;  // what was measured, what was predicted
  Bytes budget;
};

// Training goes on without what should have been planned: by the plan that there was, or plain.
struct PlanFailedEvent {
  std::string batch;
  absl::Status status;
};

struct OutOfMemoryEvent {
  std::string batch;
  bool host = false;  // host memory, for what was to leave the device
  // Of that memory:
  Bytes wanted;  // the plan's peak
  Bytes got;     // the most that the step held before it failed
  bool retried = false;
  std::string message;
  // Of device memory: planned against actual at the instruction that failed, and the cause
  // (solvers/viz/step_timeline.h); some lines.
  std::string finding;
};

// From now on plans of this agent copy nothing, whatever link the device has: what a stage or vertex holds
// cannot go to host memory (kImmovable), or too often there was too little of that (kHostMemory).
struct CopiesForbiddenEvent {
  std::string batch;
  ReplanReason reason = ReplanReason::kImmovable;
};

// Shadow mode: medians of plain steps beside what was predicted.
struct ShadowEvent {
  std::string batch;
  int64_t steps = 0;
  Nanos measured_time;
  Bytes measured_peak;
  Nanos plain_time;  // predicted for plain training
  Bytes plain_peak;
  Nanos planned_time;  // predicted for steps by the plan
  Bytes planned_peak;
};

// From this step on training is plain, or by plans again.
struct KilledEvent {
  bool killed = true;
  std::string by;
};

struct ReportSentEvent {
  std::string batch;
  int64_t steps = 0;
  Nanos step_time;
  Bytes peak;
  ExecutionVerdict verdict = ExecutionVerdict::kAccepted;
  // Of the latest step.
  int copies = 0;  // to host memory and from there
  Bytes offloaded;
  Bytes prefetched;
  Bytes reserved_peak;  // of the device, by its allocator, for the step
};

struct ReportRefusedEvent {
  std::string batch;
  absl::Status status;
};

// A job came back: by the plan that it had, or by another one and why.
struct ResumedEvent {
  std::string batch;
  bool same_plan = false;
  std::string words;
};

// The blocks of a step by a plan were given places in one region, which serves the steps to come; or it is
// not used: all steps allocate as ever, until a plan is asked for anew.
struct ArenaEvent {
  std::string batch;
  bool used = false;
  Bytes extent;         // of the region
  Bytes live_peak;      // of its blocks
  Bytes fragmentation;  // the difference
  Bytes room;           // what there is for the region
  std::string why;      // it is not used
};

using AgentEvent = std::variant<BudgetSharedEvent, ProfileTakenEvent, CacheHitEvent, PlannedEvent,
                                AdoptedEvent, FellBackEvent, ReplanEvent, PlanFailedEvent,
                                OutOfMemoryEvent, CopiesForbiddenEvent, ShadowEvent, KilledEvent,
                                ReportSentEvent, ReportRefusedEvent, ResumedEvent, ArenaEvent>;

// "cache_hit", "out_of_memory", ...: of each type, for figures.
const char* KindOf(const AgentEvent& event);

// One line for people; of BudgetSharedEvent, and OutOfMemoryEvent with a finding, several.
std::string ToString(const AgentEvent& event);

// On the agent's thread, before what it is about goes on. It must not call the agent.
using EventCallback = std::function<void(const AgentEvent&)>;

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGENT_EVENT_H_
