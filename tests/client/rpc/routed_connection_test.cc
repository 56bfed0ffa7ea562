#include "client/rpc/routed_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/rpc/mock_plan_connection.h"
#include "client/rpc/rendezvous.h"
#include "client/rpc/retrying_connection.h"
#include "proto/codec/grpc_status.h"
#include "tests/client/rpc/plan_client_fixture.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::_;
using testing::ElementsAre;
using testing::InvokeWithoutArgs;
using testing::NiceMock;
using testing::Return;

using Clock = CallOptions::Clock;

// Three replicas of which every call is written down. Time passes when the test says so.
class RoutedConnectionTest : public testing::Test {
 protected:
  RoutedConnectionTest() {
    SetReplicas({"a:1", "b:1", "c:1"});
    Make();
  }

  RoutingPolicy OfTheTest(RoutingPolicy policy) {
    policy.now = [this] { return now_; };
    return policy;
  }

  void Make(const RoutingPolicy& policy = {}) {
    connection_ = MakeRoutedConnection(
        "the replicas", [this](const CallOptions&) { return addresses_; },
        [this](const std::string& address) { return MakeReplica(address); }, OfTheTest(policy));
  }

  void SetReplicas(std::vector<std::string> addresses) {
    addresses_ = std::make_shared<const std::vector<std::string>>(std::move(addresses));
  }

  std::unique_ptr<PlanConnection> MakeReplica(const std::string& address) {
    ++made_[address];
    auto replica = std::make_unique<NiceMock<MockPlanConnection>>();
    const auto says = [this, address](const absl::Status& otherwise) {
      return InvokeWithoutArgs([this, address, otherwise] {
        asked_.push_back(address);
        now_ += takes_;
        const absl::Status& said = answers_[address];
        return said.ok() ? otherwise : said;
      });
    };
    const absl::Status none = absl::NotFoundError("none");
    ON_CALL(*replica, GetPlan).WillByDefault(says(none));
    ON_CALL(*replica, ComputePlan).WillByDefault(says(none));
    ON_CALL(*replica, WatchPlan)
        .WillByDefault([this, says, address](const auto&, const auto&, const auto&,
                                             const ProgressCallback& progress, const auto&) {
          asked_.push_back(address);
          if (tells_ && progress) progress({0.5, nullptr});
          const absl::Status& said = answers_[address];
          return said.ok() ? absl::NotFoundError("none") : said;
        });
    ON_CALL(*replica, GetFrontier).WillByDefault(says(none));
    ON_CALL(*replica, FitBatch).WillByDefault(says(none));
    ON_CALL(*replica, ExplainPlan).WillByDefault(says(none));
    ON_CALL(*replica, ReportExecution).WillByDefault(says(none));
    ON_CALL(*replica, ListPlans).WillByDefault(says(none));
    ON_CALL(*replica, ChangePlan).WillByDefault(says(none));
    ON_CALL(*replica, DeletePlan).WillByDefault(says(none));
    ON_CALL(*replica, ExportDecisions).WillByDefault(says(none));
    ON_CALL(*replica, ImportDecisions).WillByDefault(says(none));
    ON_CALL(*replica, GetCapabilities).WillByDefault(says(none));
    return replica;
  }

  // The replicas in a key's order.
  std::vector<std::string> OrderOf(const PlanKey& key) const {
    std::vector<std::string> order = **addresses_;
    std::sort(order.begin(), order.end(), [&key](const std::string& a, const std::string& b) {
      return RendezvousScore(key, a) > RendezvousScore(key, b);
    });
    return order;
  }

  void IsAway(const std::string& address) { answers_[address] = absl::UnavailableError("away"); }
  void AllAreAway() {
    for (const std::string& address : **addresses_) IsAway(address);
  }
  void IsBack(const std::string& address) { answers_[address] = absl::OkStatus(); }

  absl::Status Get(const CallOptions& options = {}) {
    return connection_->GetPlan({key_, PlanKey()}, Budget(LeastBudget{}), options).status();
  }
  // Whom a call asks.
  std::vector<std::string> AskedBy(const std::function<void()>& call) {
    asked_.clear();
    call();
    return asked_;
  }
  std::vector<std::string> AskedByGet() {
    return AskedBy([this] { Get().IgnoreError(); });
  }

  Clock::time_point now_ = Clock::time_point() + std::chrono::hours(1);
  const PlanKey key_{kEncodingVersion, Sha256("a plan")};
  absl::StatusOr<ReplicaAddresses> addresses_;
  std::map<std::string, absl::Status> answers_;  // of those that do not just have no plan
  bool tells_ = false;                           // a watch tells progress
  Clock::duration takes_{0};                     // each call
  std::map<std::string, int> made_;
  std::vector<std::string> asked_;
  std::unique_ptr<PlanConnection> connection_;
};

TEST_F(RoutedConnectionTest, AKeyGoesToItsReplicaAndNoOther) {
  const std::string home = OrderOf(key_)[0];
  for (int i = 0; i < 3; ++i) EXPECT_THAT(AskedByGet(), ElementsAre(home));
  EXPECT_THAT(AskedBy([&] { connection_->ExplainPlan(key_, Bytes(1), {}).status().IgnoreError(); }),
              ElementsAre(home));
  ExecutionMeasurement measurement;
  measurement.key = key_;
  EXPECT_THAT(
      AskedBy([&] { connection_->ReportExecution(measurement, {}).status().IgnoreError(); }),
      ElementsAre(home));
  EXPECT_THAT(
      AskedBy([&] {
        connection_->ChangePlan({key_, Bytes(1), 1}, RevisionAction::kPin, {}, {}).IgnoreError();
      }),
      ElementsAre(home));
  EXPECT_THAT(AskedBy([&] { connection_->DeletePlan(key_, {}, {}).status().IgnoreError(); }),
              ElementsAre(home));
}

TEST_F(RoutedConnectionTest, AProfileGoesByItsKeyAtAnyBudgetAndWithAnyTimes) {
  const Profile profile = SmallProfile();
  KeyOptions options;
  options.tenant = "a tenant";
  const PlanKey key = MakePlanKey(profile, options);
  const std::string home = OrderOf(key)[0];
  for (const int64_t bytes : {1, 1000, 1000000}) {
    const Budget budget = Bytes(bytes);
    EXPECT_THAT(AskedBy([&] {
                  connection_->GetPlan({key}, budget, {}).status().IgnoreError();
                  connection_->ComputePlan(profile, budget, options, {}).status().IgnoreError();
                  connection_->WatchPlan(profile, budget, options, {}, {}).status().IgnoreError();
                }),
                ElementsAre(home, home, home));
  }
  BatchQuery query;
  query.profiles = {{8, profile}, {16, SmallProfile(5)}};
  query.options = options;
  EXPECT_THAT(AskedBy([&] {
                connection_->GetFrontier(profile, options, 0, {}).status().IgnoreError();
                connection_->FitBatch(query, {}).status().IgnoreError();
              }),
              ElementsAre(home, home));
}

TEST_F(RoutedConnectionTest, WhatIsPlannedForAJobIsWhereItsClientLooksForIt) {
  CountingSource source;
  PlanClientOptions options;
  options.key.tenant = "a tenant";
  options.other_keys = {PlanKey{kEncodingVersion, Sha256("of a bucket")}};
  PlanClient client(connection_.get(), options);
  const std::string home = OrderOf(MakePlanKey(source.full(), options.key))[0];
  EXPECT_THAT(
      AskedBy([&] {
        EXPECT_TRUE(absl::IsNotFound(
            client.Plan(&source, Bytes(1 << 20), CallOptions::Within(seconds(10))).status()));
      }),
      ElementsAre(home, home));  // GetPlan, then ComputePlan
}

TEST_F(RoutedConnectionTest, EveryReplicaIsTheFirstForSomeKeys) {
  for (int i = 0; i < 50; ++i) {
    connection_
        ->GetPlan({PlanKey{kEncodingVersion, Sha256(absl::StrCat(i))}}, Budget(LeastBudget{}), {})
        .status()
        .IgnoreError();
  }
  for (const std::string& address : **addresses_) {
    EXPECT_GT(std::count(asked_.begin(), asked_.end(), address), 5) << address;
  }
}

TEST_F(RoutedConnectionTest, WhatHasNoKeyGoesToOneReplicaOfTheConnectionsOwn) {
  std::map<std::string, int> firsts;
  for (int i = 0; i < 60; ++i) {
    Make();
    const std::vector<std::string> asked = AskedBy([&] {
      connection_->GetCapabilities({}).status().IgnoreError();
      connection_->ListPlans({}, {}).status().IgnoreError();
      connection_->ExportDecisions("", 0, {}).status().IgnoreError();
      connection_->ExportDecisions("second", 0, {}).status().IgnoreError();
      connection_->ImportDecisions({}, {}).status().IgnoreError();
    });
    ASSERT_EQ(asked.size(), 5u);
    EXPECT_THAT(asked, testing::Each(asked[0]));
    ++firsts[asked[0]];
  }
  EXPECT_EQ(firsts.size(), 3u);
}

TEST_F(RoutedConnectionTest, AListOfOneKeyIsItsReplicas) {
  ListQuery query;
  for (int i = 0; i < 20; ++i) {
    query.key = PlanKey{kEncodingVersion, Sha256(absl::StrCat(i))};
    EXPECT_EQ(AskedBy([&] { connection_->ListPlans(query, {}).status().IgnoreError(); }),
              std::vector<std::string>{OrderOf(*query.key).front()});
  }
}

TEST_F(RoutedConnectionTest, WhatHasNoKeyGoesToTheFirstThatAnswers) {
  IsAway("a:1");
  IsAway("b:1");
  EXPECT_TRUE(absl::IsNotFound(connection_->GetCapabilities({}).status()));
  EXPECT_EQ(asked_.back(), "c:1");
}

// A token of a page belongs to no replica, and an import may be repeated.
TEST_F(RoutedConnectionTest, DecisionsGoOnToTheNextReplica) {
  const auto expect_next = [this](const std::function<absl::Status()>& call) {
    Make();
    const std::string first =
        AskedBy([&] { connection_->GetCapabilities({}).status().IgnoreError(); }).front();
    IsAway(first);
    const std::vector<std::string> asked = AskedBy([&] { EXPECT_TRUE(absl::IsNotFound(call())); });
    EXPECT_THAT(asked, ElementsAre(first, testing::Ne(first)));
    IsBack(first);
  };
  expect_next([this] { return connection_->ExportDecisions("second", 0, {}).status(); });
  expect_next([this] { return connection_->ImportDecisions({}, {}).status(); });
}

TEST_F(RoutedConnectionTest, OneThatIsAwayIsPassedOverAndRests) {
  const std::vector<std::string> order = OrderOf(key_);
  IsAway(order[0]);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1]));
  EXPECT_TRUE(absl::IsNotFound(Get()));
  now_ += milliseconds(4900);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[1]));
  // One call finds out that it is still away.
  now_ += milliseconds(200);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1]));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[1]));
  now_ += milliseconds(5100);
  IsBack(order[0]);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0]));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0]));
}

TEST_F(RoutedConnectionTest, AfterARestOneCallAsksAndOthersDoNotWaitForIt) {
  const std::vector<std::string> order = OrderOf(key_);
  // While the second call asks it, another one comes.
  std::map<std::string, int> calls;
  PlanConnection* routed = nullptr;
  const auto connection = MakeRoutedConnection(
      "", [this](const CallOptions&) { return addresses_; },
      [&](const std::string& address) {
        auto replica = std::make_unique<NiceMock<MockPlanConnection>>();
        ON_CALL(*replica, GetPlan)
            .WillByDefault([&, address](const auto&, const auto&, const auto&) {
              const bool first = address == order[0];
              if (++calls[address] == 2 && first) {
                routed->GetPlan({key_}, Budget(LeastBudget{}), {}).status().IgnoreError();
              }
              return first ? absl::UnavailableError("away") : absl::NotFoundError("none");
            });
        return replica;
      },
      OfTheTest({}));
  routed = connection.get();
  routed->GetPlan({key_}, Budget(LeastBudget{}), {}).status().IgnoreError();
  now_ += seconds(6);
  routed->GetPlan({key_}, Budget(LeastBudget{}), {}).status().IgnoreError();
  EXPECT_EQ(calls[order[0]], 2);
  EXPECT_EQ(calls[order[1]], 3);
}

TEST_F(RoutedConnectionTest, WhenAllRestAllAreAsked) {
  AllAreAway();
  const std::vector<std::string> order = OrderOf(key_);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1], order[2]));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1], order[2]));
  EXPECT_TRUE(absl::IsUnavailable(Get()));
  IsBack(order[2]);
  EXPECT_TRUE(absl::IsNotFound(Get()));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[2]));
}

// Else calls that come while all rest would keep each of them away for as long as they come.
TEST_F(RoutedConnectionTest, WhoIsAskedWhileItRestsRestsNoLonger) {
  AllAreAway();
  const std::vector<std::string> order = OrderOf(key_);
  Get().IgnoreError();
  now_ += seconds(4);
  IsBack(order[2]);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1], order[2]));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[2]));
  now_ += milliseconds(1500);
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1], order[2]));
}

TEST_F(RoutedConnectionTest, OtherErrorsAreAnswers) {
  for (const absl::Status& error :
       {absl::NotFoundError("no"), absl::ResourceExhaustedError("busy"),
        absl::DeadlineExceededError("late"), absl::InternalError("broken"),
        absl::PermissionDeniedError("no"), absl::CancelledError("cancelled")}) {
    const std::string home = OrderOf(key_)[0];
    answers_[home] = error;
    EXPECT_EQ(Get(), error);
    EXPECT_THAT(AskedByGet(), ElementsAre(home)) << error;
  }
}

// Its store is away, for the others perhaps not.
TEST_F(RoutedConnectionTest, OneThatSaysItselfWhatItCannotDoDoesNotRestUnlessItDrains) {
  const std::vector<std::string> order = OrderOf(key_);
  answers_[order[0]] = WithReason(absl::UnavailableError("no store"), "STORE_UNAVAILABLE");
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1]));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1]));
  answers_[order[0]] = WithReason(absl::UnavailableError("the end"), "DRAINING");
  EXPECT_THAT(AskedByGet(), ElementsAre(order[0], order[1]));
  EXPECT_THAT(AskedByGet(), ElementsAre(order[1]));
}

TEST_F(RoutedConnectionTest, ACancelledCallGoesOnToNobody) {
  AllAreAway();
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  options.cancel->Cancel();
  EXPECT_TRUE(absl::IsCancelled(Get(options)));
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(RoutedConnectionTest, ACallGoesOnWhileThereIsTime) {
  AllAreAway();
  takes_ = seconds(1);
  CallOptions options;
  options.deadline = now_ + milliseconds(1500);
  EXPECT_EQ(AskedBy([&] { Get(options).IgnoreError(); }).size(), 2u);
  options.deadline = now_ + seconds(60);
  options.reach_by = now_ + milliseconds(500);
  EXPECT_EQ(AskedBy([&] { Get(options).IgnoreError(); }).size(), 1u);
  RoutingPolicy policy;
  policy.reach = milliseconds(1500);
  Make(policy);
  EXPECT_EQ(AskedBy([&] { Get().IgnoreError(); }).size(), 2u);
}

TEST_F(RoutedConnectionTest, EachButTheLastGetsHalfOfTheTimeToBeReached) {
  std::vector<Clock::duration> given;
  const auto connection = MakeRoutedConnection(
      "", [this](const CallOptions&) { return addresses_; },
      [&](const std::string&) {
        auto replica = std::make_unique<NiceMock<MockPlanConnection>>();
        ON_CALL(*replica, GetPlan)
            .WillByDefault([&](const auto&, const auto&, const CallOptions& limited) {
              given.push_back(limited.reach_by - now_);
              now_ = limited.reach_by;
              return absl::UnavailableError("nobody answers");
            });
        return replica;
      },
      OfTheTest({}));
  CallOptions options;
  options.reach_by = now_ + milliseconds(400);
  EXPECT_TRUE(
      absl::IsUnavailable(connection->GetPlan({key_}, Budget(LeastBudget{}), options).status()));
  EXPECT_THAT(given, ElementsAre(milliseconds(200), milliseconds(100), milliseconds(100)));
}

TEST_F(RoutedConnectionTest, WhatMayHaveBeenCarriedOutIsLeftToWhoeverTriesAgain) {
  const std::vector<std::string> order = OrderOf(key_);
  const auto expect_one = [&](const std::function<absl::Status()>& call) {
    Make();
    IsAway(order[0]);
    EXPECT_THAT(AskedBy([&] { EXPECT_TRUE(absl::IsUnavailable(call())); }), ElementsAre(order[0]));
    EXPECT_THAT(AskedBy([&] { EXPECT_FALSE(absl::IsUnavailable(call())); }), ElementsAre(order[1]));
  };
  expect_one([&] {
    return connection_->ChangePlan({key_, Bytes(1), 1}, RevisionAction::kPin, {"etag", "id"}, {});
  });
  expect_one([&] { return connection_->DeletePlan(key_, {"etag", "id"}, {}).status(); });
  ExecutionMeasurement measurement;
  measurement.key = key_;
  expect_one([&] { return connection_->ReportExecution(measurement, {}).status(); });

  Make();
  CallOptions of_job;
  of_job.job = "a job";
  EXPECT_THAT(
      AskedBy([&] { connection_->ReportExecution(measurement, of_job).status().IgnoreError(); }),
      ElementsAre(order[0], order[1]));
}

// Without an answer from the first, the second finds nothing: it was deleted.
TEST_F(RoutedConnectionTest, ADeletionIsTriedAgainAtTheNextReplica) {
  const std::vector<std::string> order = OrderOf(key_);
  const auto connection = MakeRetryingConnection(MakeRoutedConnection(
      "", [this](const CallOptions&) { return addresses_; },
      [&](const std::string& address) {
        auto replica = std::make_unique<NiceMock<MockPlanConnection>>();
        ON_CALL(*replica, DeletePlan)
            .WillByDefault(
                [&order, address](const auto&, const auto&, const auto&) -> absl::StatusOr<bool> {
                  if (address == order[0]) return absl::UnavailableError("the answer is lost");
                  return false;
                });
        return replica;
      }));
  const absl::StatusOr<bool> deleted = connection->DeletePlan(key_, {"etag", ""}, {});
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(*deleted);
}

TEST_F(RoutedConnectionTest, AWatchGoesOnUntilProgressWasTold) {
  const std::vector<std::string> order = OrderOf(MakePlanKey(SmallProfile(), {}));
  int told = 0;
  const auto watch = [&] {
    connection_
        ->WatchPlan(SmallProfile(), Bytes(1000), {}, [&told](const PlanProgress&) { ++told; }, {})
        .status()
        .IgnoreError();
  };
  IsAway(order[0]);
  EXPECT_THAT(AskedBy(watch), ElementsAre(order[0], order[1]));
  tells_ = true;
  IsAway(order[1]);
  EXPECT_THAT(AskedBy(watch), ElementsAre(order[1]));
  EXPECT_EQ(told, 1);
  // It may have lost its connection alone: its solve is joined there, unless it is away.
  tells_ = false;
  EXPECT_THAT(AskedBy(watch), ElementsAre(order[1], order[2]));
  EXPECT_THAT(AskedBy(watch), ElementsAre(order[2]));
}

TEST_F(RoutedConnectionTest, AWatchDoesNotComeBackToAReplicaThatDrains) {
  const std::vector<std::string> order = OrderOf(MakePlanKey(SmallProfile(), {}));
  const auto watch = [&] {
    connection_->WatchPlan(SmallProfile(), Bytes(1000), {}, [](const PlanProgress&) {}, {})
        .status()
        .IgnoreError();
  };
  tells_ = true;
  answers_[order[0]] = WithReason(absl::UnavailableError("the end"), "DRAINING");
  EXPECT_THAT(AskedBy(watch), ElementsAre(order[0]));
  EXPECT_THAT(AskedBy(watch), ElementsAre(order[1]));
}

TEST_F(RoutedConnectionTest, ReplicasThatStayKeepTheirConnectionsAndTheirRest) {
  const std::vector<std::string> order = OrderOf(key_);
  IsAway(order[0]);
  Get().IgnoreError();
  SetReplicas({"a:1", "b:1", "c:1", "d:1"});
  EXPECT_EQ(made_[order[0]], 1);
  Get().IgnoreError();
  EXPECT_EQ(made_[order[0]], 1);
  EXPECT_EQ(made_["d:1"], 1);
  EXPECT_EQ(std::count(asked_.begin(), asked_.end(), order[0]), 1);
}

TEST_F(RoutedConnectionTest, ReplicasThatGoAreAskedNoMoreAndThoseThatComeTakeTheirShare) {
  const std::string home = OrderOf(key_)[0];
  EXPECT_THAT(AskedByGet(), ElementsAre(home));
  std::vector<std::string> others = **addresses_;
  others.erase(std::find(others.begin(), others.end(), home));
  SetReplicas(others);
  EXPECT_THAT(AskedByGet(), ElementsAre(OrderOf(key_)[0]));
  others.push_back(home);
  SetReplicas(others);
  EXPECT_THAT(AskedByGet(), ElementsAre(home));
  EXPECT_EQ(made_[home], 2);
}

TEST_F(RoutedConnectionTest, AReplicaThatGoesFailsNoCallInFlight) {
  // The name stands for another one by the time that the first fails: it is asked then.
  SetReplicas({"old:1"});
  const auto connection = MakeRoutedConnection(
      "", [this](const CallOptions&) { return addresses_; },
      [this](const std::string& address) {
        auto replica = std::make_unique<NiceMock<MockPlanConnection>>();
        NiceMock<MockPlanConnection>* const self = replica.get();
        ON_CALL(*replica, GetPlan)
            .WillByDefault([this, self, address](const auto&, const auto&, const auto&) {
              asked_.push_back(address);
              if (address != "old:1") return absl::NotFoundError("none");
              SetReplicas({"new:1"});
              std::thread([this] { Get().IgnoreError(); }).join();
              EXPECT_EQ(self->name(), "");  // still there
              return absl::UnavailableError("away");
            });
        return replica;
      });
  EXPECT_TRUE(absl::IsNotFound(connection->GetPlan({key_}, Budget(LeastBudget{}), {}).status()));
  EXPECT_EQ(asked_.front(), "old:1");
  EXPECT_EQ(asked_.back(), "new:1");
}

TEST_F(RoutedConnectionTest, ErrorsOfTheSourceAreAnswersAsLongAsNobodyWasAsked) {
  addresses_ = absl::UnavailableError("cannot look up: unknown name");
  EXPECT_EQ(Get(), addresses_.status());
  EXPECT_TRUE(asked_.empty());
}

TEST_F(RoutedConnectionTest, NameIsThatOfAllReplicas) {
  EXPECT_EQ(connection_->name(), "the replicas");
}

}  // namespace
}  // namespace stowage
