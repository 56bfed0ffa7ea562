// A long solve, and a Redis whose primary goes meanwhile: what another server does that is asked for the same plan.
//
// As solve_lease.h and leased_solve.h say: who was told that another one solves waits for it, also while nobody can say, for
// LeasedSolveOptions::lease_time at least; a lease that went with the primary costs one more solve; and however many
// solve, each once, all answer with a right plan.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/service/planning_service.h"
#include "server/store/leased_solve.h"
#include "server/store/memory_plan_store.h"
#include "server/store/redis_keys.h"
#include "server/store/redis_plan_store.h"
#include "server/store/redis_pool.h"
#include "server/store/redis_solve_lease.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/redis_failover.h"
#include "tests/server/support/answers.h"
#include "tests/server/support/asked.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/fake_solver.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {
namespace {

using std::chrono::milliseconds;

const bool kSkips = (SkipWithoutRedis(), true);

// No renewal comes in a test.
constexpr milliseconds kLong = std::chrono::minutes(30);
// Ends within a test.
constexpr milliseconds kBrief = std::chrono::seconds(2);
// Of a Redis where an answer must come, however busy the machine is. One that is killed refuses at once.
constexpr milliseconds kPatient = std::chrono::seconds(10);

ProfileShape ShapeOf(int stages) {
  ProfileShape shape;
  shape.stages = stages;
  return shape;
}
const ProfileShape kKept = ShapeOf(6);  // its lease outlives the primary
const ProfileShape kLost = ShapeOf(7);  // its lease does not
const ProfileShape kUntold = ShapeOf(8);

std::string LeaseOf(const ProfileShape& shape) {
  return RedisKeys("stowage").Lease(ProblemOf(shape)->key, kTight);
}

class WatchedLease final : public SolveLease {
 public:
  explicit WatchedLease(SolveLease* watched) : watched_(watched) {}

  LeaseAnswer Acquire(const SolveQuestion& question) override {
    LeaseAnswer answer = watched_->Acquire(question);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++seen_[answer.state];
    return answer;
  }
  int Seen(LeaseState state) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto seen = seen_.find(state);
    return seen == seen_.end() ? 0 : seen->second;
  }

 private:
  SolveLease* const watched_;
  mutable std::mutex mutex_;
  std::map<LeaseState, int> seen_;
};

// As stowaged puts it together: plans in its memory and in the Redis, whose leases say who solves. Who was told that another
// one solves counts that as so for `believed`, where nobody can say.
struct SharingServer {
  SharingServer(const RedisOptions& options, milliseconds lease_time, bool held,
                std::chrono::nanoseconds believed = LeasedSolveOptions().lease_time)
      : redis(std::make_shared<RedisPool>(options)),
        redis_lease(LivingFor(lease_time), redis),
        lease(&redis_lease),
        solver(held),
        store(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
              std::make_unique<RedisPlanStore>(RedisStoreOptions{}, redis, &metrics),
              std::chrono::seconds(10)),
        service(Sharing(&lease, believed), &store, &solver, &metrics) {}

  static RedisLeaseOptions LivingFor(milliseconds time) {
    RedisLeaseOptions options;
    options.time_to_live = time;
    return options;
  }
  static PlanningOptions Sharing(SolveLease* lease, std::chrono::nanoseconds believed) {
    PlanningOptions options;
    options.lease = lease;
    options.lease_wait.lease_time = believed;
    return options;
  }

  void Ask(int index, const ProfileShape& shape) {
    service.ComputePlan({ChainProfile(shape), kTight, KeyOptions(), std::nullopt},
                        answers.Of(index));
  }

  CountingMetrics metrics;
  const std::shared_ptr<RedisPool> redis;
  RedisSolveLease redis_lease;
  WatchedLease lease;
  FakeSolver solver;
  TieredPlanStore store;
  Answers answers;
  PlanningService service;
};

// Whose answer it is; adds a failure unless that is the right plan.
AnswerSource RightAnswer(SharingServer* server, int index, const ProfileShape& shape) {
  EXPECT_TRUE(Await([&] { return server->answers.Has(index); }));
  const absl::StatusOr<ComputeAnswer> answer = server->answers.WaitFor(index);
  EXPECT_TRUE(answer.ok()) << answer.status();
  if (!answer.ok()) return AnswerSource::kShared;
  const auto problem = ProblemOf(shape);
  const Plan right = Solved(problem, kTight).plan;
  EXPECT_EQ(answer->key, problem->key);
  EXPECT_EQ(answer->plan.status, PlanStatus::kFound);
  EXPECT_EQ(answer->plan.prediction.makespan, right.prediction.makespan);
  EXPECT_LE(answer->plan.prediction.peak, kTight);
  return answer->source;
}

bool HasLeaseOf(const RedisServer& redis, const ProfileShape& shape) {
  return redis.Ask({"EXISTS", LeaseOf(shape)}).integer == 1;
}

// Until the server is told that another one solves what it is asked for, once more than by now.
bool AwaitTold(const SharingServer& server) {
  const int before = server.lease.Seen(LeaseState::kTaken);
  return Await([&] { return server.lease.Seen(LeaseState::kTaken) > before; });
}

bool AwaitRedis(const SharingServer& server) {
  return Await([&] { return server.redis->Ping().ok(); });
}

// Two solves that go on while the primary goes, and a server that is asked for the plan of one before, of the other after.
struct OngoingSolves {
  explicit OngoingSolves(const RedisOptions& options)
      : solving(options, kLong, true), asked(options, kLong, true, kLong) {}

  void Begin(const RedisServer& replica) {
    solving.Ask(0, kKept);
    solving.Ask(1, kLost);
    ASSERT_TRUE(solving.solver.WaitUntilStarted(2));
    ASSERT_TRUE(Await([&] { return HasLeaseOf(replica, kKept) && HasLeaseOf(replica, kLost); }));
    asked.Ask(0, kKept);
    ASSERT_TRUE(AwaitTold(asked));
  }

  // Once the primary is gone.
  void ExpectWhatTheLeasesPromise(const RedisServer& replica) {
    ASSERT_TRUE(AwaitRedis(asked));
    ASSERT_TRUE(AwaitTold(asked));
    EXPECT_EQ(asked.solver.started(), 0) << "it had been told that another one solves";

    ASSERT_EQ(replica.Ask({"DEL", LeaseOf(kLost)}).integer, 1) << "as if it had not heard of it";
    asked.Ask(1, kLost);
    ASSERT_TRUE(asked.solver.WaitUntilStarted(1));
    ASSERT_TRUE(AwaitRedis(solving));
    solving.solver.Release();
    EXPECT_EQ(RightAnswer(&solving, 0, kKept), AnswerSource::kSolved);
    EXPECT_EQ(RightAnswer(&solving, 1, kLost), AnswerSource::kSolved);
    EXPECT_EQ(RightAnswer(&asked, 0, kKept), AnswerSource::kCache);
    asked.solver.Release();
    EXPECT_EQ(RightAnswer(&asked, 1, kLost), AnswerSource::kSolved);
    EXPECT_EQ(solving.solver.started(), 2);
    EXPECT_EQ(asked.solver.started(), 1) << "one for the lease that was lost";
  }

  SharingServer solving;
  SharingServer asked;
};

// A solve that ends while there is no primary: its plan gets to no Redis, and nobody lets go of its lease.
struct EndingSolve {
  explicit EndingSolve(const RedisOptions& options)
      : ending(options, kBrief, true),
        waiting(options, kBrief, false),
        unaware(options, kBrief, false) {}

  void Begin(const RedisServer& replica) {
    ending.Ask(0, kUntold);
    ASSERT_TRUE(ending.solver.WaitUntilStarted(1));
    ASSERT_TRUE(Await([&] { return HasLeaseOf(replica, kUntold); }));
    waiting.Ask(0, kUntold);
    // Where the machine is so busy that Redis has not answered in time, it solves.
    ASSERT_TRUE(Await([&] {
      return waiting.lease.Seen(LeaseState::kTaken) > 0 || waiting.solver.started() > 0;
    }));
  }

  void End() {
    unaware.Ask(0, kUntold);
    ending.solver.Release();
  }

  void ExpectOneSolveOfEachAtMost() {
    EXPECT_EQ(RightAnswer(&ending, 0, kUntold), AnswerSource::kSolved);
    for (SharingServer* server : {&waiting, &unaware}) RightAnswer(server, 0, kUntold);
    for (SharingServer* server : {&ending, &waiting, &unaware}) {
      EXPECT_TRUE(AwaitRedis(*server));
      server->Ask(1, kUntold);
      EXPECT_EQ(RightAnswer(server, 1, kUntold), AnswerSource::kCache);
      EXPECT_LE(server->solver.started(), 1);
    }
  }

  SharingServer ending;
  SharingServer waiting;
  SharingServer unaware;  // of the lease, too
};

using LeasedFailover = RedisFailover;

TEST_F(LeasedFailover, AKilledPrimaryCostsNoSolveBeyondWhatTheLeasesPromise) {
  RedisOptions patient = options_;
  patient.timeout = kPatient;
  OngoingSolves ongoing(patient);
  EndingSolve ending(options_);
  ASSERT_NO_FATAL_FAILURE(ongoing.Begin(replica_));
  ASSERT_NO_FATAL_FAILURE(ending.Begin(replica_));
  primary_->Kill();
  ending.End();
  ASSERT_NO_FATAL_FAILURE(ongoing.ExpectWhatTheLeasesPromise(replica_));
  ending.ExpectOneSolveOfEachAtMost();
  EXPECT_TRUE(IsPrimary(replica_));

  SharingServer later(options_, kLong, false);
  later.Ask(0, kKept);
  later.Ask(1, kLost);
  EXPECT_EQ(RightAnswer(&later, 0, kKept), AnswerSource::kCache);
  EXPECT_EQ(RightAnswer(&later, 1, kLost), AnswerSource::kCache);
  EXPECT_EQ(later.solver.started(), 0);
}

// READONLY, as from a primary that others have replaced.
TEST(LeasedSolves, ARedisThatTakesNoWritesForAMomentCostsNoSolve) {
  const RedisServer redis;
  SharingServer solving(redis.options(), kLong, true);
  SharingServer asked(redis.options(), kLong, false, kLong);
  solving.Ask(0, kKept);
  ASSERT_TRUE(solving.solver.WaitUntilStarted(1));
  asked.Ask(0, kKept);
  ASSERT_TRUE(AwaitTold(asked));
  ASSERT_EQ(redis.Ask({"REPLICAOF", "127.0.0.1", "1"}).text, "OK");
  ASSERT_TRUE(Await([&] { return asked.lease.Seen(LeaseState::kFailed) > 0; }));
  ASSERT_EQ(redis.Ask({"REPLICAOF", "NO", "ONE"}).text, "OK");
  ASSERT_TRUE(AwaitTold(asked));
  solving.solver.Release();
  EXPECT_EQ(RightAnswer(&solving, 0, kKept), AnswerSource::kSolved);
  EXPECT_EQ(RightAnswer(&asked, 0, kKept), AnswerSource::kCache);
  EXPECT_EQ(asked.solver.started(), 0) << "it had been told that another one solves";
  EXPECT_EQ(solving.solver.started(), 1);
}

}  // namespace
}  // namespace stowage::testing
