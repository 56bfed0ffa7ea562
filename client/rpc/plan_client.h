// Plans for a job, asked for in the order that costs least: by key first, which takes the structure
// of the network alone, and with a profile only when nothing that fits is cached. Whatever comes is
// judged by the job's own profile before it is handed on.
//
// Structure that was told from shapes has no workspaces in it, so its own replay says too little. A plan
// that is judged by it must hold twice: the replay within the budget, and within it the peak that the
// server predicts under the workspaces of those who measured. The prediction stays the server's. A
// share is then one of what plain training takes by the server's costs, for this job has not measured
// its own. Where any of that fails, or for "least", the job measures, and judges by what it measured.
// So it does where a profile is wanted: nobody has measured those workspaces, or they have drifted. What
// they take beyond the server's prediction is then left free by asking for a plan within that much less.
//
// Shapes that come in turn, a shorter sequence or the last batch of an epoch, need no plans of their own: what
// was planned for a larger one holds for them (solvers/model/problem.h). The client remembers the last shapes
// it had plans for, and asks by their keys, too.
#ifndef STOWAGE_CLIENT_RPC_PLAN_CLIENT_H_
#define STOWAGE_CLIENT_RPC_PLAN_CLIENT_H_

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

// What a job knows of its network. The profiles are the source's, valid until its next call.
class ProfileSource {
 public:
  virtual ~ProfileSource() = default;

  // Structure without having run anything: its overheads may be too small, all else is that of the
  // others. Null where it cannot be told so, or more is known already.
  virtual const Profile* Shapes() { return nullptr; }

  // Structure, with the memory that the network takes, where it can be told without running steps
  // for times: CostSource::kBytesOnly, or whatever has been measured already.
  virtual absl::StatusOr<const Profile*> Structure() = 0;

  // With times, measured now unless that has been done. Of the same structure: it has the same key.
  virtual absl::StatusOr<const Profile*> Full() = 0;

  // What is asked for, once Full has been: here what was.
  virtual Budget BudgetNow(const Budget& asked) { return asked; }
};

struct PlanClientOptions {
  // Solver and slots are part of the key; so is the tenant, which the server tells unless it is set.
  KeyOptions key;
  // Tried after the job's own and those of larger shapes that this client knows, at most 15 in all: keys whose
  // plans would do as well, say of a bucket of lengths. A plan that does not fit this job's profile is no plan, whoever it was made for.
  std::vector<PlanKey> other_keys;
};

struct ClientPlan {
  PlanReply reply;
  // The full profile was asked for: nothing that fits was cached.
  bool profiled = false;
  // Cached for another key, one of a larger shape. What steps by it take is no measure of that shape: not
  // to be reported.
  bool for_larger = false;
  Nanos request_time;  // what the requests took, profiling not counted
};

// Not thread-safe. The connection outlives it.
class PlanClient {
 public:
  PlanClient(PlanConnection* connection, PlanClientOptions options)
      : connection_(connection), options_(std::move(options)) {}

  // On a hit the full profile is never asked for, and mostly nothing but Shapes. The call's deadline
  // holds for all requests together, profiling not counted. A share or "least" is one of the job's own
  // profile; of a plan that Shapes did for, as said above. Errors: those of the source and of the
  // connection; INTERNAL if the evaluator refuses a solved plan.
  absl::StatusOr<ClientPlan> Plan(ProfileSource* source, const Budget& budget,
                                  const CallOptions& call);

  // With the full profile in any case: what PlanReply::profile_wanted asks for.
  absl::StatusOr<ClientPlan> Compute(ProfileSource* source, const Budget& budget,
                                     const CallOptions& call);

  // The key that the server keeps this job's plans under. Asks the server for the tenant, once.
  PlanKey KeyOf(const Profile& profile, const CallOptions& call);

 private:
  // What this client had a plan for.
  struct Known {
    PlanKey key;
    Problem problem;
    Bytes store_all_peak;
    std::shared_ptr<const stowage::Plan>
        plan;  // the last one: while it stays, its schedule is sent once
  };

  const KeyOptions& Key(const CallOptions& call);
  // The profile's, then those whose plans hold for it, the nearest first. At most 16.
  std::vector<PlanKey> KeysFor(const Profile& profile, const CallOptions& call);
  void Remember(const Profile& profile, const stowage::Plan& plan);
  // The call, with what this client holds of that key.
  CallOptions Holding(const PlanKey& key, const CallOptions& call) const;
  // What asking by shapes came to: a plan, or that nothing is cached, or neither.
  struct ByShapes {
    std::optional<ClientPlan> plan;
    bool missed = false;
    Nanos request_time;
  };
  absl::StatusOr<ByShapes> AskByShapes(const Profile& shapes, const Budget& budget,
                                       const CallOptions& call);
  absl::StatusOr<Bytes> Resolve(const Profile& profile, const Budget& budget,
                                const CallOptions& call) const;
  absl::StatusOr<ClientPlan> ComputeAfter(Nanos request_time, ProfileSource* source,
                                          const Budget& budget, const CallOptions& call);
  // A cached plan that fits the profile, and nothing where there is none. Adds to `request_time`.
  absl::StatusOr<std::optional<PlanReply>> Fitting(const std::vector<PlanKey>& keys,
                                                   const Profile& profile, Bytes budget,
                                                   const CallOptions& call, Nanos* request_time);
  // Nothing if no plan that fits is cached. Adds to `request_time`.
  absl::StatusOr<std::optional<ClientPlan>> FromCache(const Profile& profile, const Budget& budget,
                                                      const CallOptions& call, Nanos* request_time);

  PlanConnection* const connection_;
  PlanClientOptions options_;
  bool tenant_known_ = false;
  std::deque<Known> known_;  // the latest last
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_PLAN_CLIENT_H_
