// Everything that a job can say to its agent, in one struct.
#ifndef STOWAGE_CLIENT_AGENT_AGENT_OPTIONS_H_
#define STOWAGE_CLIENT_AGENT_AGENT_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/agent/agent_event.h"
#include "client/agent/device_budget.h"
#include "client/agent/plan_agreement.h"
#include "client/rpc/connect.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/memory/step_arena.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/base/tracer.h"
#include "solvers/model/budget.h"
#include "solvers/model/canonical.h"

namespace stowage {

// When steps are no longer what was predicted, the model is profiled thoroughly and planned anew.
struct DriftOptions {
  int64_t window = 50;  // steps whose medians are looked at, each time so many are made
  // Shares of the prediction: the median step time is off by more, either way; the median peak is
  // higher by more. 0 looks at neither.
  double time = 0.3;
  double peak = 0.05;
  int replans = 2;  // for each shape; then it stays as it is
};

// When a step by a plan runs out of memory, the next plan is to take less. What there was lies between
// what the step had got and what the plan takes; it is taken to be at least `factor` of the latter, and
// the next budget is `factor` of it. Nothing zeroes the gradients of the failed step but retry_step.
//
// Where it was host memory for what was to leave the device, the budget stays: the next plans, of all
// shapes, take so much less of host memory, and the last of them copies nothing. Shapes whose plans take
// more are planned again before their next step; where ranks agree, when they do.
struct OutOfMemoryOptions {
  double factor = 0.9;
  int tries = 3;  // smaller plans for each shape; 0 makes none
  // Zeroes the gradients, plans within less, or without copies where something could not move, and makes
  // the step once more: only for jobs whose every step starts from zeroed gradients. The inputs of a graph
  // then stay in memory during its steps.
  bool retry_step = false;
  // A whole step that fails for want of memory, or since something could not move, is ended by the plan that takes the
  // least memory, without copies: it runs again from its inputs on, adds to those gradients that it had not added to yet,
  // and leaves the others. Gradients are then those of a step that did not fail, and each was ready once. Inputs stay in
  // memory as of `retry_step`, beside which it must not be set. Always so where ranks agree, but not once a must_keep part
  // has run. Where that plan takes more than the budget, the step fails all the same.
  bool finish_step = false;
};

// Steps by plans get their memory from one region, at offsets planned from the first step of each plan and
// shape of batch (client/torch/memory/step_arena.h): what a step reserves is then known, and held against
// `device_limit`, or the plan's budget where there is none. Planning takes up to a second or two, once for
// each; a region that does not fit is not used (ArenaEvent). Reserved bytes are in Agent::memory. Of the CPU alone, of its
// installed TrackingAllocator.
struct ArenaOptions {
  StepArenaOptions region;
};

struct AgentOptions {
  // Of stowaged: "host:port" or "unix:/path". Empty plans in this process.
  GrpcOptions server;
  RetryPolicy retry;
  // For one plan, all of its requests together, the profiling not counted; for one report. A server that is slow does
  // not use it up: see FallbackPolicy::patience.
  std::chrono::milliseconds plan_timeout{60000};
  std::chrono::milliseconds report_timeout{2000};
  // Whose requests these are, see CallOptions::job; empty: JobName() (client/rpc/job_name.h).
  std::string job;

  // Of Profile and Refresh, and after drift. `bytes_only` is the agent's own; without a device of its own
  // it measures on `device`.
  ProfileOptions profile;
  // Asks by structure told from shapes, see ChainFromShapes; off, by that of a measuring pass.
  bool plan_by_shapes = true;
  // That steps by plans run on; null as Executor::Create has it. It must outlive the agent. Where it
  // has a link to host memory, profiles state that and plans may copy, unless plan.recompute_only forbids
  // it. A step fails where a stage holds what autograd does not save, which cannot move; the next plan
  // then copies nothing (CopiesForbiddenEvent).
  ExecutionDevice* device = nullptr;
  // Passes for times when nothing is cached and the job waits for its first plan. None is for warming up
  // where a pass for the bytes came before them.
  int first_repeats = 1;
  // Part of the key. The defaults leave solver and slots to the planner. Without a link plans only
  // recompute.
  KeyOptions plan;

  // For Plan without a budget, and for Step before any Plan. At most one of the two. A limit of 0 bytes is what can be had
  // of `device` when the agent is made (LimitOfDevice).
  std::optional<Budget> budget;
  std::optional<DeviceLimit> device_limit;

  // Shapes of batches that are remembered, with their plans.
  int64_t max_shapes = 32;
  // A new shape is served by the plan for a larger one, where there is one, for so many steps; then it
  // is worth a plan of its own. 0: at once. Where ranks agree, it is served so for good.
  int64_t steps_by_larger = 2;

  // Report is called by itself after so many steps by a plan of a server, where ranks agree on rank 0; 0: never.
  int64_t report_after = 20;
  // After so many steps, of whatever shape, a server whose plan is stepped by is asked whether it would like
  // a fresh profile (GetPlanResponse.profile_wanted); then the next step begins with `profile` and another
  // plan by it (ReplanReason::kProfileWanted). A profile takes about a dozen steps' time. 0: never. Not in
  // shadow mode; where ranks agree, the first asks and all measure.
  int64_t wanted_profile_every = 1000;
  DriftOptions drift;
  OutOfMemoryOptions out_of_memory;

  // Each step by a plan is measured instruction by instruction (Agent::measured).
  bool measure_steps = false;

  // Absent: steps allocate as ever.
  std::optional<ArenaOptions> arena;

  // Plans and predicts, but trains plain, and tells after every `shadow_every` steps of a shape.
  bool shadow = false;
  int64_t shadow_every = 20;

  // Of a job with many ranks, which plan as one: Plan, Refresh and Resume are then calls of all ranks,
  // Step plans by itself, in this process, for a larger batch that this rank alone may have met,
  // and what one rank finds out (DriftOptions, OutOfMemoryOptions) leads to
  // another plan of all, which all ranks make alike: before the next step where the agreement votes (a process group), else
  // every `drift.window` steps; where that step is of another shape, so many steps later again or some more. A batch stays in memory until
  // its whole step (Step) ends, as of `finish_step`, so that a graph's peak may be higher than planned by its inputs. All
  // ranks make equally many steps. Where the kill switch is on at one rank, all train plain: from the step after the next
  // where the agreement votes, else from the next look at what ranks have found out, and as long. Null: this rank is alone.
  std::shared_ptr<PlanAgreement> agreement;

  // The kill switch, asked before each step: as long as it says true, or the environment variable is set
  // to anything but "" and "0", training is plain and nothing is profiled or asked. Both may be empty.
  std::function<bool()> off;
  std::string off_variable = "STOWAGE_OFF";

  EventCallback on_event;

  // Where the spans of plan requests and reports go, "stowage.plan" and "stowage.report"; servers
  // that trace have their own below them. Null: nowhere. An OtlpExporter
  // (proto/otlp/otlp_exporter.h) sends them to a collector. It must outlive the agent.
  Tracer* tracer = nullptr;
  // The W3C traceparent of the span that the job is in, asked at each request on the thread that
  // trains. Null or "": requests begin traces of their own, if there is a tracer.
  std::function<std::string()> traceparent;
};

// What steps are measured with, planned and plain ones: the meter of the device, else that to profile with; null:
// the installed TrackingAllocator.
MemoryMeter* MeterOf(const AgentOptions& options);

// OK, or INVALID_ARGUMENT made by FieldError with names below "options.".
absl::Status CheckAgentOptions(const AgentOptions& options);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_AGENT_OPTIONS_H_
