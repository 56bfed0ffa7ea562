#include "client/rpc/retrying_connection.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "client/rpc/status_of.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

using std::chrono::nanoseconds;

// What a second attempt may do that the first has done already.
enum Safety {
  kSafe,         // nothing: every attempt has the same effect
  kWhenRefused,  // something: try again only where the server says that it did nothing
};

// A UUID of version 4.
std::string NewRequestId() {
  std::random_device random;
  const auto draw = [&random] { return (uint64_t{random()} << 32) | random(); };
  const uint64_t high = (draw() & ~uint64_t{0xf000}) | 0x4000;
  const uint64_t low = (draw() & ~(uint64_t{3} << 62)) | (uint64_t{1} << 63);
  return absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, (high >> 16) & 0xffff,
                         high & 0xffff, low >> 48, low & 0xffffffffffff);
}

// Of a change that was asked for before, without an answer.
template <class Result>
Result UnknownOutcome(const Result& result) {
  const absl::Status& status = StatusOf(result);
  absl::Status said(status.code(),
                    absl::StrCat(status.message(),
                                 "; an attempt before this one had no answer, and may have been "
                                 "carried out"));
  status.ForEachPayload(
      [&said](absl::string_view url, const absl::Cord& payload) { said.SetPayload(url, payload); });
  return said;
}

bool IsFaster(const Plan& a, const Plan& b) {
  return a.prediction.makespan < b.prediction.makespan;
}

// The waits of one call.
class Backoff {
 public:
  Backoff(const RetryPolicy& policy, const std::function<double()>& uniform)
      : policy_(policy), uniform_(uniform), next_(policy.initial_backoff) {}

  // How long to wait after `error`; nothing if trying again is of no use.
  std::optional<nanoseconds> After(const absl::Status& error, Safety safety) {
    if (absl::IsUnavailable(error) && safety == kSafe) return Grow();
    if (absl::IsResourceExhausted(error)) return AsAsked(error);
    return std::nullopt;
  }

  void Restart() { next_ = policy_.initial_backoff; }

 private:
  // A server gives all whom it sheds the same delay: they must not come back in step either.
  std::optional<nanoseconds> AsAsked(const absl::Status& error) const {
    const auto asked = GetRetryDelay(error);
    if (!asked) return std::nullopt;
    const nanoseconds delay = std::min<nanoseconds>(*asked, policy_.max_server_delay);
    return delay + nanoseconds(static_cast<int64_t>(static_cast<double>(delay.count()) *
                                                    policy_.jitter * uniform_()));
  }

  nanoseconds Grow() {
    const auto base = static_cast<double>(next_.count());
    const auto limit = static_cast<double>(nanoseconds(policy_.max_backoff).count());
    next_ = nanoseconds(static_cast<int64_t>(std::min(base * policy_.multiplier, limit)));
    const double spread = 1.0 + policy_.jitter * (2.0 * uniform_() - 1.0);
    return nanoseconds(static_cast<int64_t>(std::min(base, limit) * spread));
  }

  const RetryPolicy& policy_;
  const std::function<double()>& uniform_;
  nanoseconds next_;
};

class RetryingConnection : public PlanConnection {
 public:
  RetryingConnection(std::unique_ptr<PlanConnection> inner, const RetryPolicy& policy,
                     RetryEnvironment environment)
      : inner_(std::move(inner)), policy_(policy), environment_(std::move(environment)) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    return Retry(kSafe, options, [&] { return inner_->GetPlan(keys, budget, options); });
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return Retry(kSafe, options,
                 [&] { return inner_->ComputePlan(profile, budget, key_options, options); });
  }

  absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                      const KeyOptions& key_options,
                                      const ProgressCallback& progress,
                                      const CallOptions& options) override {
    // A server that is asked again has the solve still, or goes on with what it had found
    // (server/service/unfinished_plans.h); another one may be behind: what the caller has seen is not unsaid.
    double seen = 0;
    std::optional<Plan> best;
    bool went_on = false;
    const ProgressCallback rising = [&](const PlanProgress& so_far) {
      const bool faster = so_far.best != nullptr && (!best || IsFaster(*so_far.best, *best));
      went_on = went_on || faster || so_far.share > seen;
      seen = std::max(seen, so_far.share);
      if (faster) best = *so_far.best;
      if (progress) progress({seen, best ? &*best : nullptr});
    };
    int attempts = 0;
    const auto watch = [&] {
      ++attempts;
      went_on = false;
      return inner_->WatchPlan(profile, budget, key_options, rising, options);
    };
    absl::StatusOr<PlanReply> reply = Retry(kSafe, options, watch, &went_on);
    if (attempts == 1 || !best) return reply;
    if (absl::IsDeadlineExceeded(reply.status())) {
      return PlanReply{*std::move(best), MakePlanKey(profile, key_options), PlanSource::kSolved};
    }
    const bool found = reply.ok() && reply->plan.status == PlanStatus::kFound;
    if (found && !reply->plan.search_complete && IsFaster(*best, reply->plan)) {
      reply->plan = *std::move(best);
    }
    return reply;
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    return Retry(kSafe, options,
                 [&] { return inner_->GetFrontier(profile, key_options, max_points, options); });
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    return Retry(kSafe, options, [&] { return inner_->FitBatch(query, options); });
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                          const CallOptions& options) override {
    return Retry(kSafe, options, [&] { return inner_->ExplainPlan(key, budget, options); });
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                   const CallOptions& options) override {
    return Retry(options.job.empty() ? kWhenRefused : kSafe, options,
                 [&] { return inner_->ReportExecution(measurement, options); });
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery& query, const CallOptions& options) override {
    return Retry(kSafe, options, [&] { return inner_->ListPlans(query, options); });
  }

  absl::Status ChangePlan(const PlanRevision& revision, RevisionAction action,
                          const ChangeTerms& terms, const CallOptions& options) override {
    return Change(terms, options, [&](const ChangeTerms& same) {
      return inner_->ChangePlan(revision, action, same, options);
    });
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const ChangeTerms& terms,
                                  const CallOptions& options) override {
    bool unanswered = false;
    return Change(terms, options, [&](const ChangeTerms& same) {
      absl::StatusOr<bool> deleted = inner_->DeletePlan(key, same, options);
      // What is gone now, the attempt without an answer has deleted.
      if (unanswered && deleted.ok()) *deleted = true;
      unanswered = unanswered || absl::IsUnavailable(deleted.status());
      return deleted;
    });
  }

  absl::StatusOr<ExportedDecisions> ExportDecisions(const std::string& page_token,
                                                    int32_t page_size,
                                                    const CallOptions& options) override {
    return Retry(kSafe, options,
                 [&] { return inner_->ExportDecisions(page_token, page_size, options); });
  }

  absl::StatusOr<ImportedDecisions> ImportDecisions(const std::vector<std::string>& decisions,
                                                    const CallOptions& options) override {
    return Retry(kSafe, options, [&] { return inner_->ImportDecisions(decisions, options); });
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    return Retry(kSafe, options, [&] { return inner_->GetCapabilities(options); });
  }

  std::string name() const override { return inner_->name(); }

 private:
  // `went_on`, where there is one, says after an attempt that it brought the call further than those before: attempts
  // and waits count from there, so that long work survives any number of lost connections, and what fails at the
  // same place again and again ends.
  template <class Call>
  auto Retry(Safety safety, const CallOptions& options, const Call& call,
             const bool* went_on = nullptr) -> decltype(call()) {
    Backoff backoff(policy_, environment_.uniform);
    auto result = call();
    for (int attempt = 1; attempt < policy_.max_attempts && !result.ok(); ++attempt) {
      const absl::Status& error = StatusOf(result);
      const std::optional<nanoseconds> wait = backoff.After(error, safety);
      if (!wait || !Fits(*wait, options)) break;
      environment_.sleep(*wait, options.cancel.get());
      if (options.cancel && options.cancel->cancelled()) return absl::CancelledError("cancelled");
      result = call();
      if (went_on != nullptr && *went_on) {
        attempt = 0;
        backoff.Restart();
      }
    }
    return result;
  }

  // Every attempt under the same id.
  template <class Call>
  auto Change(const ChangeTerms& terms, const CallOptions& options, const Call& call)
      -> decltype(call(terms)) {
    ChangeTerms same = terms;
    if (same.request_id.empty()) same.request_id = NewRequestId();
    bool unanswered = false;
    auto result = Retry(same.etag.empty() ? kWhenRefused : kSafe, options, [&] {
      auto attempt = call(same);
      if (unanswered && absl::IsAborted(StatusOf(attempt))) return UnknownOutcome(attempt);
      unanswered = unanswered || absl::IsUnavailable(StatusOf(attempt));
      return attempt;
    });
    return result;
  }

  bool Fits(nanoseconds wait, const CallOptions& options) const {
    const CallOptions::Clock::time_point limit = std::min(options.deadline, options.reach_by);
    return limit == CallOptions::Clock::time_point::max() || wait < limit - environment_.now();
  }

  const std::unique_ptr<PlanConnection> inner_;
  const RetryPolicy policy_;
  const RetryEnvironment environment_;
};

}  // namespace

RetryEnvironment RetryEnvironment::Real() {
  RetryEnvironment real;
  real.now = [] { return CallOptions::Clock::now(); };
  real.sleep = [](nanoseconds wait, const CancelToken* cancel) {
    if (cancel == nullptr) {
      std::this_thread::sleep_for(wait);
    } else {
      cancel->SleepFor(wait);
    }
  };
  real.uniform = [] {
    // One per thread, seeded apart: processes that start together must not retry together.
    thread_local std::minstd_rand generator{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.0, 1.0)(generator);
  };
  return real;
}

std::unique_ptr<PlanConnection> MakeRetryingConnection(std::unique_ptr<PlanConnection> inner,
                                                       const RetryPolicy& policy,
                                                       RetryEnvironment environment) {
  return std::make_unique<RetryingConnection>(std::move(inner), policy, std::move(environment));
}

}  // namespace stowage
