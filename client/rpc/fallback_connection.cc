#include "client/rpc/fallback_connection.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/rpc/status_of.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

using Clock = CallOptions::Clock;

// A server that has shed the call, not one that a limit of the request's own forbids it to take.
bool IsBusy(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && GetRetryDelay(status).has_value();
}

// Whether the primary is asked. No lock: a forked child may find it taken.
class Absence {
 public:
  enum class Turn { kAsk, kProbe, kLeave };

  explicit Absence(const FallbackPolicy& policy) : policy_(policy) {}

  Turn Next() {
    Clock::rep until = until_;
    if (until == kHere) return Turn::kAsk;
    const Clock::time_point now = policy_.now();
    if (now.time_since_epoch().count() < until) return Turn::kLeave;
    // Others leave it to the one that is first.
    const bool first = until_.compare_exchange_strong(until, After(now, pause_));
    return first ? Turn::kProbe : Turn::kLeave;
  }

  // The primary has said something.
  void Heard() { until_ = kHere; }

  // It could not be reached.
  void Missed(Turn turn) {
    if (turn != Turn::kProbe && until_ != kHere) return;  // no news
    pause_ = turn == Turn::kProbe ? std::min<Clock::rep>(2 * pause_, Count(policy_.longest_pause))
                                  : Count(policy_.first_pause);
    until_ = After(policy_.now(), pause_);
  }

  // With the time for reaching the primary.
  CallOptions Limited(const CallOptions& options, Turn turn) const {
    CallOptions limited = options;
    const Clock::time_point now = policy_.now();
    const auto reach_within = [&](Clock::duration time) {
      limited.reach_by = std::min(limited.reach_by, now + time);
    };
    if (options.has_deadline()) reach_within((options.deadline - now) / 4);
    if (turn == Turn::kProbe) reach_within(policy_.probe);
    return limited;
  }

  // Whether a call that was given so little time has used it up: that says nothing of the primary.
  bool Hurried(Clock::time_point start, const CallOptions& limited) const {
    return policy_.now() >= limited.reach_by && limited.reach_by - start < policy_.probe;
  }

  Clock::time_point now() const { return policy_.now(); }

 private:
  static constexpr Clock::rep kHere = 0;

  static Clock::rep Count(Clock::duration time) { return time.count(); }
  static Clock::rep After(Clock::time_point now, Clock::rep pause) {
    return now.time_since_epoch().count() + pause;
  }

  const FallbackPolicy policy_;
  std::atomic<Clock::rep> until_{kHere};  // since the clock's epoch
  std::atomic<Clock::rep> pause_{0};
};

class FallbackConnection : public PlanConnection {
 public:
  FallbackConnection(std::unique_ptr<PlanConnection> primary,
                     std::unique_ptr<PlanConnection> fallback,
                     std::function<void(const std::string&)> said, const FallbackPolicy& policy)
      : primary_(std::move(primary)),
        fallback_(std::move(fallback)),
        said_(std::move(said)),
        absence_(policy) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    return Call(options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->GetPlan(keys, budget, limited);
    });
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return Call(options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->ComputePlan(profile, budget, key_options, limited);
    });
  }

  absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                      const KeyOptions& key_options,
                                      const ProgressCallback& progress,
                                      const CallOptions& options) override {
    double seen = 0;
    const ProgressCallback rising = [&seen, &progress](const PlanProgress& so_far) {
      seen = std::max(seen, so_far.share);
      if (progress) progress({seen, so_far.best});
    };
    return Call(options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->WatchPlan(profile, budget, key_options, rising, limited);
    });
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    return Call(options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->GetFrontier(profile, key_options, max_points, limited);
    });
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    return Call(options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->FitBatch(query, limited);
    });
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    // What the server is, nobody else can say: its tenant is part of every key.
    const Absence::Turn turn = absence_.Next();
    if (turn == Absence::Turn::kLeave) {
      return absl::UnavailableError(
          absl::StrCat(primary_->name(), " was not reachable a moment ago"));
    }
    return Ask(turn, options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->GetCapabilities(limited);
    });
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                          const CallOptions& options) override {
    return Noted(primary_->ExplainPlan(key, budget, options));
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                   const CallOptions& options) override {
    return Noted(primary_->ReportExecution(measurement, options));
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery& query, const CallOptions& options) override {
    return Noted(primary_->ListPlans(query, options));
  }

  absl::Status ChangePlan(const PlanRevision& revision, RevisionAction action,
                          const ChangeTerms& terms, const CallOptions& options) override {
    return Noted(primary_->ChangePlan(revision, action, terms, options));
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const ChangeTerms& terms,
                                  const CallOptions& options) override {
    return Noted(primary_->DeletePlan(key, terms, options));
  }

  std::string name() const override {
    return absl::StrCat(primary_->name(), ", or else ", fallback_->name());
  }

 private:
  // The primary's answer.
  template <class Result>
  Result Noted(Result result) {
    const absl::Status& status = StatusOf(result);
    if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) absence_.Heard();
    return result;
  }

  template <class Function>
  auto Ask(Absence::Turn turn, const CallOptions& options, const Function& function)
      -> decltype(function(nullptr, options)) {
    const Clock::time_point start = absence_.now();
    const CallOptions limited = absence_.Limited(options, turn);
    auto result = Noted(function(primary_.get(), limited));
    if (absl::IsUnavailable(result.status()) && !absence_.Hurried(start, limited)) {
      absence_.Missed(turn);
    }
    return result;
  }

  template <class Function>
  auto Call(const CallOptions& options, const Function& function)
      -> decltype(function(nullptr, options)) {
    const Absence::Turn turn = absence_.Next();
    if (turn != Absence::Turn::kLeave) {
      auto result = Ask(turn, options, function);
      if (!absl::IsUnavailable(result.status()) && !IsBusy(result.status())) return result;
      Say(IsBusy(result.status()) ? "is busy" : "is not reachable", result.status().message());
    } else {
      // Found out by a call that does not fall back, GetCapabilities say.
      Say("is not reachable", "it was not a moment ago");
    }
    return function(fallback_.get(), options);
  }

  void Say(const char* what, absl::string_view reason) {
    if (!said_) return;
    std::call_once(once_, [&] {
      said_(absl::StrCat(primary_->name(), " ", what, " (", reason, "): falling back to ",
                         fallback_->name()));
    });
  }

  const std::unique_ptr<PlanConnection> primary_;
  const std::unique_ptr<PlanConnection> fallback_;
  const std::function<void(const std::string&)> said_;
  Absence absence_;
  std::once_flag once_;
};

}  // namespace

std::unique_ptr<PlanConnection> MakeFallbackConnection(std::unique_ptr<PlanConnection> primary,
                                                       std::unique_ptr<PlanConnection> fallback,
                                                       std::function<void(const std::string&)> said,
                                                       const FallbackPolicy& policy) {
  return std::make_unique<FallbackConnection>(std::move(primary), std::move(fallback),
                                              std::move(said), policy);
}

}  // namespace stowage
