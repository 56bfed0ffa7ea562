// A PlanConnection whose answers a test decides. Needs GoogleMock; tests only.
#ifndef STOWAGE_CLIENT_RPC_MOCK_PLAN_CONNECTION_H_
#define STOWAGE_CLIENT_RPC_MOCK_PLAN_CONNECTION_H_

#include <gmock/gmock.h>

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
  MOCK_METHOD(absl::StatusOr<Capabilities>, GetCapabilities, (const CallOptions& options),
              (override));
  MOCK_METHOD(std::string, name, (), (const, override));
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_MOCK_PLAN_CONNECTION_H_
