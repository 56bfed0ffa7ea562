#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "client/rpc/local_connection.h"
#include "client/rpc/retrying_connection.h"
#include "proto/codec/codec.h"
#include "proto/codec/grpc_status.h"
#include "tests/client/rpc/served_connection.h"
#include "tests/server/support/growing_deadline.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

using Clock = CallOptions::Clock;
using Writer = grpc::ServerWriter<v1::WatchPlanResponse>;

// What watching shows: shares, and the makespans of the plans so far (0 for none).
struct Seen {
  std::vector<double> shares;
  std::vector<int64_t> makespans;
};

class WatchPlanTest : public ServedConnectionTest {
 protected:
  WatchPlanTest() { budget_ = ShareOfStoreAll{1.0}; }

  absl::StatusOr<PlanReply> Watch(const CallOptions& options = CallOptions::Within(seconds(10))) {
    const ProgressCallback progress = [this](const PlanProgress& so_far) {
      seen_.shares.push_back(so_far.share);
      seen_.makespans.push_back(so_far.best == nullptr ? 0
                                                       : so_far.best->prediction.makespan.value());
    };
    return connection_->WatchPlan(SmallProfile(), budget_, {}, progress, options);
  }

  static Plan PlanFor(const Budget& budget) {
    const auto reply = MakeLocalConnection()->ComputePlan(SmallProfile(), budget, {}, {});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.value().plan;
  }

  static v1::WatchPlanResponse Progress(double share) {
    v1::WatchPlanResponse message;
    message.set_progress(share);
    return message;
  }

  static v1::WatchPlanResponse Message(double share, const Plan& plan) {
    v1::WatchPlanResponse message = Progress(share);
    *message.mutable_plan() = ToProto(plan);
    *message.mutable_key() = ToProto(MakePlanKey(SmallProfile(), {}));
    return message;
  }

  static v1::WatchPlanResponse Last(const Plan& plan) {
    v1::WatchPlanResponse message = Message(1.0, plan);
    message.set_done(true);
    message.set_source(v1::PLAN_SOURCE_SOLVED);
    return message;
  }

  // The server sends these, then ends well.
  void Script(std::vector<v1::WatchPlanResponse> messages) {
    server_.watch_plan = [messages](const v1::WatchPlanRequest&, Writer* writer) {
      for (const v1::WatchPlanResponse& message : messages) writer->Write(message);
      return absl::OkStatus();
    };
  }

  void ExpectBroken(const std::string& words) {
    const auto reply = Watch();
    EXPECT_TRUE(absl::IsInternal(reply.status())) << reply.status();
    EXPECT_THAT(std::string(reply.status().message()), HasSubstr(words));
  }

  Seen seen_;
};

TEST_F(WatchPlanTest, TellsProgressAndTheBestPlanSoFar) {
  const Plan slow = PlanFor(ShareOfStoreAll{0.7});
  const Plan fast = PlanFor(budget_);
  ASSERT_LT(fast.prediction.makespan, slow.prediction.makespan);
  Script({Progress(0.1), Message(0.2, slow), Progress(0.6), Last(fast)});
  const auto reply = Watch();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.schedule, fast.schedule);
  EXPECT_EQ(reply->source, PlanSource::kSolved);
  EXPECT_EQ(reply->key, MakePlanKey(SmallProfile(), {}));
  EXPECT_THAT(seen_.shares, ElementsAre(0.1, 0.2, 0.6, 1.0));
  const int64_t slow_time = slow.prediction.makespan.value();
  EXPECT_THAT(seen_.makespans,
              ElementsAre(0, slow_time, slow_time, fast.prediction.makespan.value()));
}

TEST_F(WatchPlanTest, TheLastPlanMayBeTheOneSentBefore) {
  const Plan plan = PlanFor(budget_);
  v1::WatchPlanResponse last = Last(plan);
  last.clear_plan();
  Script({Message(0.5, plan), last});
  const auto reply = Watch();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.schedule, plan.schedule);
}

TEST_F(WatchPlanTest, InfeasibleIsAnAnswer) {
  budget_ = Bytes(1);
  Script({Progress(0.5), Last(PlanFor(budget_))});
  const auto reply = Watch();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_THAT(seen_.makespans, ElementsAre(0, 0));
}

TEST_F(WatchPlanTest, TheDeadlineLeavesTheBestPlanSoFar) {
  const Plan slow = PlanFor(ShareOfStoreAll{0.7});
  v1::WatchPlanResponse nameless = Message(0.2, slow);
  nameless.clear_key();
  Script({nameless});
  server_.hangs = true;
  EXPECT_TRUE(WithinSomeTime(milliseconds(400), [&](milliseconds time) {
    const auto reply = Watch(CallOptions::Within(time));
    if (absl::IsDeadlineExceeded(reply.status()) || absl::IsUnavailable(reply.status())) {
      return false;
    }
    EXPECT_TRUE(reply.ok()) << reply.status();
    if (!reply.ok()) return true;
    EXPECT_EQ(reply->plan.schedule, slow.schedule);
    EXPECT_EQ(reply->key, MakePlanKey(SmallProfile(), {}));
    return true;
  }));
}

TEST_F(WatchPlanTest, TheDeadlineIsAnErrorBeforeThereIsAPlan) {
  Script({Progress(0.2)});
  server_.hangs = true;
  EXPECT_TRUE(WithinSomeTime(milliseconds(300), [&](milliseconds time) {
    const absl::Status status = Watch(CallOptions::Within(time)).status();
    if (absl::IsUnavailable(status)) return false;  // it took half of the time to connect
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    return true;
  }));
}

TEST_F(WatchPlanTest, ALostConnectionIsTakenUpAgain) {
  connection_ = MakeRetryingConnection(std::move(connection_));
  const Plan plan = PlanFor(budget_);
  server_.watch_plan = [&](const v1::WatchPlanRequest&, Writer* writer) {
    if (server_.calls == 1) {
      writer->Write(Message(0.4, plan));
      return absl::UnavailableError("gone");
    }
    writer->Write(Progress(0.2));
    writer->Write(Last(plan));
    return absl::OkStatus();
  };
  const auto reply = Watch();
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->plan.schedule, plan.schedule);
  EXPECT_EQ(server_.calls, 2);
  const int64_t time = plan.prediction.makespan.value();
  EXPECT_THAT(seen_.shares, ElementsAre(0.4, 0.4, 1.0));
  EXPECT_THAT(seen_.makespans, ElementsAre(time, time, time));
}

TEST_F(WatchPlanTest, IsCancelledByItsToken) {
  Script({Message(0.2, PlanFor(budget_))});
  server_.hangs = true;
  CallOptions options = CallOptions::Within(seconds(20));
  options.cancel = std::make_shared<CancelToken>();
  std::thread canceller([&options] {
    std::this_thread::sleep_for(milliseconds(100));
    options.cancel->Cancel();
  });
  const auto reply = Watch(options);
  canceller.join();
  EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
  // A token that is cancelled ends what comes later, too, without a word to the server.
  const int calls = server_.calls;
  EXPECT_TRUE(absl::IsCancelled(Watch(options).status()));
  EXPECT_EQ(server_.calls, calls);
}

TEST_F(WatchPlanTest, StreamsThatBreakTheContractAreInternal) {
  const Plan plan = PlanFor(budget_);
  Script({});
  ExpectBroken("without its last message");
  Script({Message(0.5, plan)});
  ExpectBroken("without its last message");
  Script({Last(plan), Last(plan)});
  ExpectBroken("after the last one");
  Script({Progress(0.5), Progress(0.4)});
  ExpectBroken("progress");
  for (const double share : {-0.1, 1.1, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    Script({Progress(share)});
    ExpectBroken("progress");
  }
  v1::WatchPlanResponse empty = Last(plan);
  empty.clear_plan();
  Script({empty});
  ExpectBroken("no plan");
  v1::WatchPlanResponse nameless = Last(plan);
  nameless.clear_key();
  Script({nameless});
  ExpectBroken("no key");
  Script({Message(0.5, PlanFor(Bytes(1)))});
  ExpectBroken("a plan so far that is none");
  v1::WatchPlanResponse forged = Message(0.5, plan);
  forged.mutable_plan()->set_digest("forged");
  Script({forged});
  ExpectBroken("plan.digest");
}

TEST_F(WatchPlanTest, APlanOverTheBudgetIsRefusedWhereverItComes) {
  const Plan large = PlanFor(ShareOfStoreAll{1.0});
  budget_ = ShareOfStoreAll{0.7};
  Script({Message(0.5, large)});
  ExpectBroken("evaluator");
  Script({Last(large)});
  ExpectBroken("evaluator");
}

TEST_F(WatchPlanTest, ErrorsOfTheServerPassThrough) {
  server_.watch_plan = [](const v1::WatchPlanRequest& request, Writer*) {
    EXPECT_EQ(request.job(), "job 7");
    return WithReason(absl::FailedPreconditionError("no"), "WHY");
  };
  CallOptions options = CallOptions::Within(seconds(10));
  options.job = "job 7";
  const auto reply = Watch(options);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(reply.status()), "WHY");
}

Profile GraphProfile() {
  std::ifstream in(STOWAGE_SOURCE_DIR "/tests/data/profile_graph.json");
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  const auto message = ProfileFromJson(json);
  EXPECT_TRUE(message.ok()) << message.status();
  const auto profile = FromProto(message.value());
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.value();
}

TEST(LocalWatch, TellsOfEveryPlanSoFarAndEndsWithTheBest) {
  Seen seen;
  const Profile profile = GraphProfile();
  const auto local = MakeLocalConnection();
  const ProgressCallback progress = [&seen](const PlanProgress& so_far) {
    seen.shares.push_back(so_far.share);
    if (so_far.best == nullptr) return;
    EXPECT_LE(so_far.best->prediction.peak, so_far.best->budget);
    EXPECT_FALSE(so_far.best->stage_vertices.empty());
    seen.makespans.push_back(so_far.best->prediction.makespan.value());
  };
  const auto reply = local->WatchPlan(profile, ShareOfStoreAll{0.9}, {}, progress, {});
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->plan.status, PlanStatus::kFound);
  EXPECT_TRUE(std::is_sorted(seen.shares.begin(), seen.shares.end()));
  EXPECT_EQ(seen.shares.back(), 1.0);
  ASSERT_GT(seen.makespans.size(), 1u);  // one on the way, and the last
  EXPECT_TRUE(std::is_sorted(seen.makespans.rbegin(), seen.makespans.rend()));
  EXPECT_EQ(seen.makespans.back(), reply->plan.prediction.makespan.value());
  // Who listens changes nothing.
  const auto alone = local->ComputePlan(profile, ShareOfStoreAll{0.9}, {}, {});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->plan.schedule, reply->plan.schedule);
}

TEST(LocalWatch, IsCancelledByItsToken) {
  CallOptions options;
  options.cancel = std::make_shared<CancelToken>();
  options.cancel->Cancel();
  const auto reply =
      MakeLocalConnection()->WatchPlan(SmallProfile(), ShareOfStoreAll{0.8}, {}, {}, options);
  EXPECT_TRUE(absl::IsCancelled(reply.status())) << reply.status();
}

}  // namespace
}  // namespace stowage
