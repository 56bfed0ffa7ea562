#include "client/rpc/fallback_connection.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

class FallbackConnection : public PlanConnection {
 public:
  FallbackConnection(std::unique_ptr<PlanConnection> primary,
                     std::unique_ptr<PlanConnection> fallback,
                     std::function<void(const std::string&)> said)
      : primary_(std::move(primary)), fallback_(std::move(fallback)), said_(std::move(said)) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    return Call([&](PlanConnection* to) { return to->GetPlan(keys, budget, options); });
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    return Call(
        [&](PlanConnection* to) { return to->ComputePlan(profile, budget, key_options, options); });
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
    return Call([&](PlanConnection* to) {
      return to->WatchPlan(profile, budget, key_options, rising, options);
    });
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    return Call([&](PlanConnection* to) {
      return to->GetFrontier(profile, key_options, max_points, options);
    });
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    return Call([&](PlanConnection* to) { return to->FitBatch(query, options); });
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    // What the server is, nobody else can say: its tenant is part of every key.
    return primary_->GetCapabilities(options);
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                          const CallOptions& options) override {
    return primary_->ExplainPlan(key, budget, options);
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                   const CallOptions& options) override {
    return primary_->ReportExecution(measurement, options);
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery& query, const CallOptions& options) override {
    return primary_->ListPlans(query, options);
  }

  absl::Status PinPlan(const PlanRevision& revision, RevisionAction action,
                       const CallOptions& options) override {
    return primary_->PinPlan(revision, action, options);
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const CallOptions& options) override {
    return primary_->DeletePlan(key, options);
  }

  std::string name() const override {
    return absl::StrCat(primary_->name(), ", or else ", fallback_->name());
  }

 private:
  template <class Function>
  auto Call(const Function& function) -> decltype(function(nullptr)) {
    auto result = function(primary_.get());
    if (!absl::IsUnavailable(result.status())) return result;
    Say(result.status());
    return function(fallback_.get());
  }

  void Say(const absl::Status& reason) {
    if (!said_) return;
    std::call_once(once_, [&] {
      said_(absl::StrCat(primary_->name(), " is not reachable (", reason.message(),
                         "): falling back to ", fallback_->name()));
    });
  }

  const std::unique_ptr<PlanConnection> primary_;
  const std::unique_ptr<PlanConnection> fallback_;
  const std::function<void(const std::string&)> said_;
  std::once_flag once_;
};

}  // namespace

std::unique_ptr<PlanConnection> MakeFallbackConnection(
    std::unique_ptr<PlanConnection> primary, std::unique_ptr<PlanConnection> fallback,
    std::function<void(const std::string&)> said) {
  return std::make_unique<FallbackConnection>(std::move(primary), std::move(fallback),
                                              std::move(said));
}

}  // namespace stowage
