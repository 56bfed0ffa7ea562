// What goes into the calls of PlanConnection and what comes out of them. Value types only: nothing
// of gRPC or protobuf shows.
#ifndef STOWAGE_CLIENT_RPC_PLAN_VALUES_H_
#define STOWAGE_CLIENT_RPC_PLAN_VALUES_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/rpc/cancel_token.h"
#include "solvers/model/canonical.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/plan.h"
#include "solvers/solver.h"

namespace stowage {

struct CallOptions {
  using Clock = std::chrono::steady_clock;

  // The latest moment to answer; max() leaves it to the connection's own default.
  Clock::time_point deadline = Clock::time_point::max();
  // Ends the call with CANCELLED; null for none.
  std::shared_ptr<CancelToken> cancel = nullptr;
  // Whose call it is, the same for all ranks and restarts of a job: servers write it down, and take
  // one profile and one report per revision from each. At most 128 bytes; may be empty.
  std::string job = "";
  // Of GetPlan: a plan that the caller holds. Where the answer has the same schedule, it is not sent again
  // (PlanReply::unchanged). May be null.
  std::shared_ptr<const Plan> held = nullptr;
  // The latest moment to have reached a server that takes the call: until then it is connected to, and
  // tried again when it is away or busy. One that has taken it may take until the deadline. max() leaves
  // it to the connection.
  Clock::time_point reach_by = Clock::time_point::max();
  // Of W3C Trace Context: the span that the call is made in, for servers that trace (solvers/base/trace_context.h
  // makes one). What is malformed is not sent; may be empty.
  std::string traceparent = "";

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
  // Of GetPlan: nobody has measured what the plan was made for, or what jobs report has drifted from it. A
  // fresh profile, sent with ComputePlan, would help the next ones.
  bool profile_wanted = false;
  // Of GetPlan: the schedule is that of CallOptions::held, and was not sent; the rest of the plan is news.
  bool unchanged = false;
};

// How far a plan that is being made has come.
struct PlanProgress {
  double share = 0;            // done, in [0, 1]; never falls
  const Plan* best = nullptr;  // so far, validated; null until there is one
};
// Called on the thread of the call, between messages: what it takes is taken from the call's time.
using ProgressCallback = std::function<void(const PlanProgress&)>;

struct FrontierReply {
  struct Point {
    Bytes budget;
    Nanos makespan;
    Bytes peak;
  };
  std::vector<Point> points;  // budgets rise, makespans fall
  PlanKey key;
  std::string solver;
  std::string schedule_class;
  Bytes least_budget;  // below it nothing of the class fits
  bool exact = false;  // at no budget is a schedule of the class faster
  // Where false, a deadline cut the search short: a longer one may find more points, and faster ones. Servers before
  // this field do not say.
  bool search_complete = false;
};

// One network at several batch sizes, and a device.
struct BatchQuery {
  struct Measured {
    int64_t batch_size = 0;
    Profile profile;
  };
  std::vector<Measured> profiles;  // 2 to 16
  Bytes device_budget;             // of which `reserved` goes to parameters and the optimizer
  Bytes reserved;
  KeyOptions options;
  int64_t max_batch_size = 0;  // 0 leaves it to the server
};

struct BatchReply {
  struct Point {
    int64_t batch_size = 0;
    Nanos makespan;  // both 0 where nothing fits
    Bytes peak;
    double samples_per_second = 0;  // 0 without times
    bool fits = false;
    bool within_profiles = false;  // measured, or between two that are
  };
  int64_t largest = 0;  // 0 when not even a batch of one fits
  int64_t fastest = 0;  // 0 without times
  double samples_per_second = 0;
  std::vector<Point> points;  // all that were looked at, rising
};

// Medians over the steps that a job made under a plan.
struct ExecutionMeasurement {
  PlanKey key;
  Digest plan_digest;  // ScheduleDigest of the plan
  int64_t revision = 1;
  Bytes budget;  // of the plan
  int64_t steps = 0;
  Nanos step_time;
  Bytes peak;
  // Of the latest step; 0 where it is not known.
  Bytes reserved_peak;  // of the device, by its allocator, for the step
  Bytes offloaded;      // to host memory
  Bytes prefetched;     // from there
};

enum class ExecutionVerdict {
  kAccepted,
  kOutlier,  // far from what other jobs report: counted, and nothing else
  kAbsurd,   // beyond what can be measured at all: counted, and nothing else
};
const char* ToString(ExecutionVerdict verdict);

// One revision of a plan for one budget of a key.
struct PlanRevision {
  PlanKey key;
  Bytes budget;
  int64_t revision = 0;
};

enum class RevisionAction {
  kPin,  // it serves its budget, whatever comes later
  kUnpin,
  kRollBack,  // it is never handed out again; the latest before it serves
  kPromote,   // out of the shadow
  kFreeze,    // nothing of the key's entry changes; budget and revision are not looked at
  kUnfreeze,
};

// What keeps a change from being made twice, or over what somebody else has decided meanwhile.
struct ChangeTerms {
  // ListedPlan::etag, as it was listed: ABORTED (reason ETAG_MISMATCH) where the key's plans have another one by now;
  // empty: whatever has happened.
  std::string etag;
  // The same for all attempts at one change: at most 64 of A-Z a-z 0-9 . _ -, best drawn. A server that has made the
  // change says so, and does nothing. A retrying connection draws one where it is empty.
  std::string request_id;
};

struct ListedPlan {
  enum class State { kServing, kShadow, kRetired };

  PlanRevision revision;
  std::string name;
  PlanStatus status = PlanStatus::kNotFound;
  State state = State::kServing;
  bool pinned = false;
  bool frozen = false;  // its whole entry
  Nanos makespan;
  Bytes peak;
  std::string solver;
  std::string solver_version;
  // Reports that count, and the medians of measured over predicted; 0 without any.
  int32_t reports = 0;
  double time_ratio = 0;
  double peak_ratio = 0;
  std::string tenant;  // empty on servers without tenants
  std::string etag;    // of its whole entry: see ChangeTerms
  // When the plans of its key began, to about 17 minutes; nothing where the server does not know.
  std::optional<std::chrono::system_clock::time_point> created;
  // When its entry last changed: a plan, a pin, a report; nothing where the server does not know.
  std::optional<std::chrono::system_clock::time_point> updated;
};
const char* ToString(ListedPlan::State state);

struct ListQuery {
  int32_t page_size = 0;  // plans, at most 1000; 0 leaves it to the server
  std::string page_token;
  std::optional<PlanKey> key;  // this one alone
  // `name:"resnet" AND pinned=true`: see ListPlansRequest.filter in plan_service.proto. Servers before it list all.
  std::string filter;
  // What can be listed while a store is away; else that is UNAVAILABLE.
  bool partial = false;
};

struct PlanPage {
  std::vector<ListedPlan> plans;
  std::string next_page_token;           // empty on the last page
  std::vector<std::string> unreachable;  // stores that did not answer, of a partial list
};

// What administrators have decided, a line each: "VERSION DIGEST RECORD", encoding version and digest of the key and the
// record in hexadecimal digits.
struct ExportedDecisions {
  std::vector<std::string> decisions;  // rising by key
  std::string next_page_token;         // empty on the last page
};

struct ImportedDecisions {
  int32_t taken = 0;
  int32_t known = 0;  // the server had the same, a later one, or a deletion that ends them
};

struct Capabilities {
  std::string server_version;
  int32_t key_encoding_version = 0;
  std::vector<SolverInfo> solvers;
  Bytes max_message;
  int64_t max_stages = 0;
  int64_t max_vertices = 0;
  std::vector<std::string> implemented_rpcs;
  std::string build;     // for people
  std::string identity;  // whom the server takes the caller for; empty where it asks for none
  std::string tenant;
  std::string role;  // "reader", "planner", "tenant_admin", "admin"
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_PLAN_VALUES_H_
