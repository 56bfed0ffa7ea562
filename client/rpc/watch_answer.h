// What the messages of WatchPlan add up to. Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_WATCH_ANSWER_H_
#define STOWAGE_CLIENT_RPC_WATCH_ANSWER_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

// Not thread-safe; what it is made from outlives it.
class WatchAnswer {
 public:
  WatchAnswer(const Profile& profile, const Budget& budget, const KeyOptions& key_options,
              const ProgressCallback& progress)
      : profile_(profile), budget_(budget), key_options_(key_options), progress_(progress) {}

  // The next message, in order. INTERNAL if it breaks the contract or the evaluator refuses its plan.
  absl::Status Take(const v1::WatchPlanResponse& message);

  // After the stream has ended well. INTERNAL if the last message was missing or had no plan.
  absl::StatusOr<PlanReply> Finish();

  // After the deadline has ended the stream: the best plan so far, nothing without one. Its key is
  // the server's if that has been told, else the one that the options make.
  std::optional<PlanReply> BestSoFar();

 private:
  absl::Status TakePlan(const v1::WatchPlanResponse& message);

  const Profile& profile_;
  const Budget& budget_;
  const KeyOptions& key_options_;
  const ProgressCallback& progress_;
  std::optional<Plan> plan_;
  std::optional<PlanKey> key_;
  double share_ = 0;
  bool done_ = false;
  PlanSource source_ = PlanSource::kSolved;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_WATCH_ANSWER_H_
