// One connection for each of several servers that do the same work, replicas, of which a call asks the one that its key
// belongs to: so that each replica's memory holds its own share of the plans, and one that is asked for at the same time by
// many is solved once, without asking the others.
//
// The replicas have an order for each key (rendezvous.h), the same in all processes that know them by the same addresses. A
// budget is not part of a key, nor are a profile's times: all that is asked of one network on one kind of device goes to one
// replica. GetPlan goes by the first of its keys, FitBatch by that of its first profile. The tenant is part of a key: who
// leaves it out of KeyOptions, where the server has one, asks by another key than who knows it (PlanClient asks for it).
// What has no key (ListPlans but of one key, ExportDecisions, ImportDecisions, GetCapabilities) has an order of this connection's own, so
// that connections are spread and pages are turned at one replica, as long as that is not away.
//
// A call asks the first in the order that does not rest. One that is UNAVAILABLE rests for a while, and the call goes on to the next, those
// that rest at the end. One call after each rest finds out whether it is back; the others leave it alone until then. A
// replica that says itself that a store is away (a reason other than DRAINING) does not rest. Every other answer stands, errors
// included. A call stays with the replica that it asked, which rests then for the next try (retrying_connection.h), where
// going on would be wrong:
//   ChangePlan, DeletePlan  may have been carried out
//   ReportExecution         the same, without a job's name
//   WatchPlan               once progress was told: a retrying connection knows what was. The replica does not rest: its solve
//                           goes on for a while, and the next try joins it, or goes on itself where the replica is gone
// A call goes on while there is time (CallOptions::deadline and reach_by, of which each but the last gets a half) and
// RoutingPolicy::reach has not passed, and not when it is cancelled.
//
// Errors, beside those of the replicas: those of the source; FAILED_PRECONDITION in a forked child, at once.
#ifndef STOWAGE_CLIENT_RPC_ROUTED_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_ROUTED_CONNECTION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

// At least one, none twice.
using ReplicaAddresses = std::shared_ptr<const std::vector<std::string>>;

// The replicas there are now, the same object as long as they are the same. May wait as the call allows. Called from any thread.
using ReplicaSource = std::function<absl::StatusOr<ReplicaAddresses>(const CallOptions&)>;

// A connection to one replica; opens nothing. Called from any thread, under a lock.
using ReplicaFactory = std::function<std::unique_ptr<PlanConnection>(const std::string& address)>;

struct RoutingPolicy {
  // How long one that is away is left alone.
  std::chrono::milliseconds rest{5000};
  // After so long a call goes on to no further replica: who tries again finds at rest those that it has met.
  std::chrono::milliseconds reach{5000};
  std::function<CallOptions::Clock::time_point()> now = CallOptions::Clock::now;  // a test's own
};

// `name` is for messages. A replica that the source does not name any more is let go once its last call has ended. A call
// takes O(replicas * log(replicas)) beside the replica's own time, and the key of a profile.
std::unique_ptr<PlanConnection> MakeRoutedConnection(std::string name, ReplicaSource source,
                                                     ReplicaFactory factory,
                                                     RoutingPolicy policy = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_ROUTED_CONNECTION_H_
