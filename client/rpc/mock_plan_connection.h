// A PlanConnection whose answers a test decides. Needs GoogleMock; tests only.
#ifndef STOWAGE_CLIENT_RPC_MOCK_PLAN_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_MOCK_PLAN_CONNECTION_H_

#include <gmock/gmock.h>

#include <cstdint>
#include <string>
#include <vector>

#include "client/rpc/plan_connection.h"

namespace stowage {

class MockPlanConnection : public PlanConnection {
 public:
  MOCK_METHOD(absl::StatusOr<PlanReply>, GetPlan,
              (const std::vector<PlanKey>& keys, const Budget& budget, const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<PlanReply>, ComputePlan,
              (const Profile& profile, const Budget& budget, const KeyOptions& key_options,
               const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<PlanReply>, WatchPlan,
              (const Profile& profile, const Budget& budget, const KeyOptions& key_options,
               const ProgressCallback& progress, const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<FrontierReply>, GetFrontier,
              (const Profile& profile, const KeyOptions& key_options, int max_points,
               const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<BatchReply>, FitBatch,
              (const BatchQuery& query, const CallOptions& options), (override));
  MOCK_METHOD(absl::StatusOr<std::string>, ExplainPlan,
              (const PlanKey& key, const Budget& budget, const CallOptions& options), (override));
  MOCK_METHOD(absl::StatusOr<ExecutionVerdict>, ReportExecution,
              (const ExecutionMeasurement& measurement, const CallOptions& options), (override));
  MOCK_METHOD(absl::StatusOr<PlanPage>, ListPlans,
              (const ListQuery& query, const CallOptions& options), (override));
  MOCK_METHOD(absl::Status, ChangePlan,
              (const PlanRevision& revision, RevisionAction action, const ChangeTerms& terms,
               const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<bool>, DeletePlan,
              (const PlanKey& key, const ChangeTerms& terms, const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<ExportedDecisions>, ExportDecisions,
              (const std::string& page_token, int32_t page_size, const CallOptions& options),
              (override));
  MOCK_METHOD(absl::StatusOr<ImportedDecisions>, ImportDecisions,
              (const std::vector<std::string>& decisions, const CallOptions& options), (override));
  MOCK_METHOD(absl::StatusOr<Capabilities>, GetCapabilities, (const CallOptions& options),
              (override));
  MOCK_METHOD(std::string, name, (), (const, override));
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_MOCK_PLAN_CONNECTION_H_
