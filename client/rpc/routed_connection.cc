#include "client/rpc/routed_connection.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <random>
#include <utility>

#include "client/rpc/fork_guard.h"
#include "client/rpc/peer_absence.h"
#include "client/rpc/rendezvous.h"
#include "client/rpc/status_of.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

using Clock = CallOptions::Clock;

PlanKey DrawnKey() {
  std::random_device random;
  std::array<uint8_t, Digest::kSize> bytes{};
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return PlanKey{kEncodingVersion, Digest(bytes)};
}

// Whether no server has answered, or one that is about to end.
bool IsAway(const absl::Status& status) {
  if (!absl::IsUnavailable(status)) return false;
  const std::string reason = GetReason(status);
  return reason.empty() || reason == "DRAINING";
}

// What becomes of a call whose replica has not answered it.
enum class Unanswered {
  kGoesOn,   // to the next replica
  kEnds,     // its next try asks another one
  kReturns,  // its next try asks the same one, which does not rest
};

struct RoutedReplica {
  RoutedReplica(std::string replica_address, std::unique_ptr<PlanConnection> to,
                Clock::duration rest)
      : address(std::move(replica_address)), connection(std::move(to)), absence(rest, rest) {}

  const std::string address;
  const std::unique_ptr<PlanConnection> connection;
  PeerAbsence absence;
};

using RoutedReplicas = std::vector<std::shared_ptr<RoutedReplica>>;

class RoutedConnection : public PlanConnection {
 public:
  RoutedConnection(std::string name, ReplicaSource source, ReplicaFactory factory,
                   RoutingPolicy policy)
      : name_(std::move(name)),
        source_(std::move(source)),
        factory_(std::move(factory)),
        policy_(std::move(policy)) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    return Route(keys.empty() ? PlanKey() : keys.front(), options,
                 [&](PlanConnection* to, const CallOptions& limited) {
                   return to->GetPlan(keys, budget, limited);
                 });
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return Route(MakePlanKey(profile, key_options), options,
                 [&](PlanConnection* to, const CallOptions& limited) {
                   return to->ComputePlan(profile, budget, key_options, limited);
                 });
  }

  absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                      const KeyOptions& key_options,
                                      const ProgressCallback& progress,
                                      const CallOptions& options) override {
    bool told = false;
    ProgressCallback telling;
    if (progress) {
      telling = [&told, &progress](const PlanProgress& so_far) {
        told = true;
        progress(so_far);
      };
    }
    return Route(
        MakePlanKey(profile, key_options), options,
        [&](PlanConnection* to, const CallOptions& limited) {
          return to->WatchPlan(profile, budget, key_options, telling, limited);
        },
        [&told] { return told ? Unanswered::kReturns : Unanswered::kGoesOn; });
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    return Route(MakePlanKey(profile, key_options), options,
                 [&](PlanConnection* to, const CallOptions& limited) {
                   return to->GetFrontier(profile, key_options, max_points, limited);
                 });
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    const PlanKey key = query.profiles.empty()
                            ? PlanKey()
                            : MakePlanKey(query.profiles.front().profile, query.options);
    return Route(key, options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->FitBatch(query, limited);
    });
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                          const CallOptions& options) override {
    return Route(key, options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->ExplainPlan(key, budget, limited);
    });
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                   const CallOptions& options) override {
    return Route(
        measurement.key, options,
        [&](PlanConnection* to, const CallOptions& limited) {
          return to->ReportExecution(measurement, limited);
        },
        [&options] { return options.job.empty() ? Unanswered::kEnds : Unanswered::kGoesOn; });
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery& query, const CallOptions& options) override {
    return Route(query.key.value_or(keyless_), options,
                 [&](PlanConnection* to, const CallOptions& limited) {
                   return to->ListPlans(query, limited);
                 });
  }

  absl::Status ChangePlan(const PlanRevision& revision, RevisionAction action,
                          const ChangeTerms& terms, const CallOptions& options) override {
    return Route(
        revision.key, options,
        [&](PlanConnection* to, const CallOptions& limited) {
          return to->ChangePlan(revision, action, terms, limited);
        },
        [] { return Unanswered::kEnds; });
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const ChangeTerms& terms,
                                  const CallOptions& options) override {
    return Route(
        key, options,
        [&](PlanConnection* to, const CallOptions& limited) {
          return to->DeletePlan(key, terms, limited);
        },
        [] { return Unanswered::kEnds; });
  }

  absl::StatusOr<ExportedDecisions> ExportDecisions(const std::string& page_token,
                                                    int32_t page_size,
                                                    const CallOptions& options) override {
    return Route(keyless_, options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->ExportDecisions(page_token, page_size, limited);
    });
  }

  absl::StatusOr<ImportedDecisions> ImportDecisions(const std::vector<std::string>& decisions,
                                                    const CallOptions& options) override {
    return Route(keyless_, options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->ImportDecisions(decisions, limited);
    });
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    return Route(keyless_, options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->GetCapabilities(limited);
    });
  }

  std::string name() const override { return name_; }

 private:
  // Whom a call asks next.
  struct Turn {
    std::shared_ptr<RoutedReplica> replica;  // null: all have been asked
    PeerAbsence::Turn turn = PeerAbsence::Turn::kAsk;
    bool is_last = false;
  };

  // `unanswered` says, after each replica, what becomes of the call if that one has not answered.
  template <class Function, class Then>
  auto Route(const PlanKey& key, const CallOptions& options, const Function& function,
             const Then& unanswered) -> decltype(function(nullptr, options)) {
    // Before any lock: a child has inherited them as they were.
    if (InForkedChild()) return ForkedChildError();
    const Clock::time_point start = policy_.now();
    decltype(function(nullptr, options)) result = absl::UnavailableError("there are no replicas");
    RoutedReplicas asked;
    for (;;) {
      // Looked at again each time: the name may stand for others by now.
      const absl::StatusOr<ReplicaAddresses> addresses = source_(options);
      if (!addresses.ok()) {
        if (asked.empty()) return addresses.status();
        return result;
      }
      const Turn turn = Next(*Current(*addresses), key, asked);
      if (turn.replica == nullptr) return result;
      asked.push_back(turn.replica);
      result = function(turn.replica->connection.get(), Limited(options, turn));
      const absl::Status& status = StatusOf(result);
      const Clock::time_point now = policy_.now();
      const Unanswered then = unanswered();
      // It was there, and its connection was lost, unless it says that it is about to end.
      const bool returns = then == Unanswered::kReturns && GetReason(status).empty();
      Note(returns ? absl::OkStatus() : status, turn, now);
      if (!absl::IsUnavailable(status) || then != Unanswered::kGoesOn) return result;
      if (options.cancel && options.cancel->cancelled()) return absl::CancelledError("cancelled");
      if (now >= std::min(options.deadline, options.reach_by)) return result;
      if (now - start >= policy_.reach) return result;
    }
  }
  template <class Function>
  auto Route(const PlanKey& key, const CallOptions& options, const Function& function)
      -> decltype(function(nullptr, options)) {
    return Route(key, options, function, [] { return Unanswered::kGoesOn; });
  }

  // What an answer says of the replica that gave it.
  static void Note(const absl::Status& status, const Turn& turn, Clock::time_point now) {
    if (absl::IsCancelled(status)) return;  // nothing
    if (IsAway(status)) {
      turn.replica->absence.Missed(turn.turn, now);
    } else {
      turn.replica->absence.Heard();
    }
  }

  Turn Next(const RoutedReplicas& replicas, const PlanKey& key, const RoutedReplicas& asked) const {
    struct Candidate {
      uint64_t score;
      const std::shared_ptr<RoutedReplica>* replica;
    };
    std::vector<Candidate> order;
    for (const std::shared_ptr<RoutedReplica>& replica : replicas) {
      if (std::find(asked.begin(), asked.end(), replica) != asked.end()) continue;
      order.push_back({RendezvousScore(key, replica->address), &replica});
    }
    if (order.empty()) return {};
    std::sort(order.begin(), order.end(), [](const Candidate& a, const Candidate& b) {
      return a.score != b.score ? a.score > b.score : (*a.replica)->address < (*b.replica)->address;
    });
    const Clock::time_point now = policy_.now();
    for (const Candidate& candidate : order) {
      const PeerAbsence::Turn turn = (*candidate.replica)->absence.Next(now);
      if (turn != PeerAbsence::Turn::kLeave) return {*candidate.replica, turn, order.size() == 1};
    }
    return {*order.front().replica, PeerAbsence::Turn::kLeave, order.size() == 1};
  }

  // Leaves the next replicas time to be reached.
  CallOptions Limited(const CallOptions& options, const Turn& turn) const {
    CallOptions limited = options;
    if (!turn.is_last && options.reach_by != Clock::time_point::max()) {
      const Clock::time_point now = policy_.now();
      limited.reach_by = now + (options.reach_by - now) / 2;
    }
    return limited;
  }

  // The connections to these addresses: those that there are, and new ones.
  std::shared_ptr<const RoutedReplicas> Current(const ReplicaAddresses& addresses) {
    // Those that go end their connections after the lock.
    std::shared_ptr<const RoutedReplicas> gone;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (addresses == addresses_) return replicas_;
    auto next = std::make_shared<RoutedReplicas>();
    for (const std::string& address : *addresses) {
      const auto known = std::find_if(replicas_->begin(), replicas_->end(),
                                      [&](const std::shared_ptr<RoutedReplica>& replica) {
                                        return replica->address == address;
                                      });
      next->push_back(known != replicas_->end() ? *known
                                                : std::make_shared<RoutedReplica>(
                                                      address, factory_(address), policy_.rest));
    }
    gone = std::move(replicas_);
    replicas_ = std::move(next);
    addresses_ = addresses;
    return replicas_;
  }

  const std::string name_;
  const ReplicaSource source_;
  const ReplicaFactory factory_;
  const RoutingPolicy policy_;
  const PlanKey keyless_ = DrawnKey();
  std::mutex mutex_;
  ReplicaAddresses addresses_;  // that replicas_ are of
  std::shared_ptr<const RoutedReplicas> replicas_ = std::make_shared<RoutedReplicas>();
};

}  // namespace

std::unique_ptr<PlanConnection> MakeRoutedConnection(std::string name, ReplicaSource source,
                                                     ReplicaFactory factory, RoutingPolicy policy) {
  return std::make_unique<RoutedConnection>(std::move(name), std::move(source), std::move(factory),
                                            std::move(policy));
}

}  // namespace stowage
