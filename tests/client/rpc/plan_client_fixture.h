// A client of a server that a test makes up, and a job that counts what it is asked for.
#ifndef STOWAGE_TESTS_CLIENT_RPC_PLAN_CLIENT_FIXTURE_H_
#define STOWAGE_TESTS_CLIENT_RPC_PLAN_CLIENT_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <variant>

#include "client/rpc/local_connection.h"
#include "client/rpc/mock_plan_connection.h"
#include "client/rpc/plan_client.h"
#include "tests/client/rpc/fake_server.h"

namespace stowage {

// A job whose structure is cheap, and which counts how often it is asked for more.
class CountingSource : public ProfileSource {
 public:
  CountingSource() : full_(SmallProfile()) {
    full_.cost_source = CostSource::kMeasured;
    ChainSpec spec = std::get<Chain>(full_.problem).spec();
    for (Stage& stage : spec.stages) stage.forward_time = stage.backward_time = Nanos(0);
    structure_ = Profile{"small", Device(), *Chain::Create(spec), CostSource::kBytesOnly};
  }

  absl::StatusOr<const Profile*> Structure() override {
    std::this_thread::sleep_for(structure_takes);
    return &*structure_;
  }
  absl::StatusOr<const Profile*> Full() override {
    ++full_profiles;
    return &full_;
  }

  const Profile& full() const { return full_; }

  int full_profiles = 0;
  std::chrono::milliseconds structure_takes{0};

 private:
  Profile full_;
  std::optional<Profile> structure_;
};

inline absl::StatusOr<PlanReply> SolveHere(const Profile& profile, const Budget& budget,
                                           const KeyOptions& key, const CallOptions& call) {
  absl::StatusOr<PlanReply> reply = MakeLocalConnection()->ComputePlan(profile, budget, key, call);
  if (reply.ok()) reply->source = PlanSource::kSolved;
  return reply;
}

class PlanClientTest : public testing::Test {
 protected:
  PlanClientTest() {
    ON_CALL(connection_, GetCapabilities).WillByDefault(testing::Return(Capabilities()));
    ON_CALL(connection_, GetPlan).WillByDefault(testing::Return(absl::NotFoundError("none")));
    ON_CALL(connection_, ComputePlan).WillByDefault(SolveHere);
  }

  PlanReply Cached(const Budget& budget) {
    PlanReply reply = *SolveHere(source_.full(), budget, {}, {});
    reply.source = PlanSource::kCache;
    return reply;
  }

  absl::StatusOr<ClientPlan> Plan(const PlanClientOptions& options = {}) {
    return PlanClient(&connection_, options)
        .Plan(&source_, ShareOfStoreAll{0.8}, CallOptions::Within(std::chrono::seconds(10)));
  }

  testing::NiceMock<MockPlanConnection> connection_;
  CountingSource source_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_PLAN_CLIENT_FIXTURE_H_
