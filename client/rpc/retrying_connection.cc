#include "client/rpc/retrying_connection.h"

#include <algorithm>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

using std::chrono::nanoseconds;

// The waits of one call.
class Backoff {
 public:
  Backoff(const RetryPolicy& policy, const std::function<double()>& uniform)
      : policy_(policy), uniform_(uniform), next_(policy.initial_backoff) {}

  // How long to wait after `error`; nothing if trying again is of no use.
  std::optional<nanoseconds> After(const absl::Status& error) {
    if (absl::IsUnavailable(error)) return Grow();
    if (absl::IsResourceExhausted(error)) return AsAsked(error);
    return std::nullopt;
  }

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
    return Retry(options, [&] { return inner_->GetPlan(keys, budget, options); });
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return Retry(options,
                 [&] { return inner_->ComputePlan(profile, budget, key_options, options); });
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    return Retry(options, [&] { return inner_->GetCapabilities(options); });
  }

  std::string name() const override { return inner_->name(); }

 private:
  template <class Call>
  auto Retry(const CallOptions& options, const Call& call) -> decltype(call()) {
    Backoff backoff(policy_, environment_.uniform);
    auto result = call();
    for (int attempt = 1; attempt < policy_.max_attempts && !result.ok(); ++attempt) {
      const std::optional<nanoseconds> wait = backoff.After(result.status());
      if (!wait || !Fits(*wait, options)) break;
      environment_.sleep(*wait);
      result = call();
    }
    return result;
  }

  bool Fits(nanoseconds wait, const CallOptions& options) const {
    return !options.has_deadline() || wait < options.deadline - environment_.now();
  }

  const std::unique_ptr<PlanConnection> inner_;
  const RetryPolicy policy_;
  const RetryEnvironment environment_;
};

}  // namespace

RetryEnvironment RetryEnvironment::Real() {
  RetryEnvironment real;
  real.now = [] { return CallOptions::Clock::now(); };
  real.sleep = [](nanoseconds wait) { std::this_thread::sleep_for(wait); };
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
