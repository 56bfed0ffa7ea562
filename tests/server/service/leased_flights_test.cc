// Solves that another server is at: who waits for them takes no solver's thread.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/service/planning_fixture.h"
#include "tests/server/support/asked.h"
#include "tests/server/support/shared_lease.h"

namespace stowage::testing {
namespace {

PlanningOptions Sharing(SharedLease* lease) {
  PlanningOptions options;
  options.solver_threads = 2;
  options.lease = lease;
  return options;
}

Profile OtherProfile() {
  ProfileShape shape;
  shape.stages = 7;
  return ChainProfile(shape);
}

TEST(LeasedFlights, HoweverManyWaitOthersAreSolvedAndNoneOfThemTwice) {
  constexpr int kWaiting = 8;
  SharedLease lease;
  PlanningFixture fixture(false, Sharing(&lease));
  const PlanKey key = ProblemOf(ProfileShape())->key;
  std::vector<LeaseAnswer> held;  // of another server
  for (int i = 0; i < kWaiting; ++i) held.push_back(lease.Acquire({key, kTight + Bytes(i)}));
  for (int i = 0; i < kWaiting; ++i) fixture.Ask(i, ChainProfile({}), kTight + Bytes(i));
  for (int64_t budget = kTight.value(); budget < kTight.value() + 5; ++budget) {
    const auto other = fixture.Compute(OtherProfile(), Bytes(budget));
    ASSERT_TRUE(other.ok()) << other.status();
  }
  EXPECT_EQ(fixture.solver.started(), 5);
  for (int i = 0; i < kWaiting; ++i) EXPECT_FALSE(fixture.answers.Has(i)) << i;
  held.clear();  // it has died
  for (int i = 0; i < kWaiting; ++i) EXPECT_TRUE(fixture.answers.WaitFor(i).ok()) << i;
  EXPECT_EQ(fixture.answers.callbacks(), kWaiting + 5u);
}

TEST(LeasedFlights, GetWhatTheOtherServerHasSolved) {
  SharedLease lease;
  PlanningFixture one(true, Sharing(&lease));
  const FakeSolver solver(false);
  CountingMetrics metrics;
  Answers answers;
  PlanningService two(Sharing(&lease), &one.store, &solver, &metrics);
  const ComputeRequest request{ChainProfile({}), kTight, KeyOptions(), std::nullopt};
  one.Ask(0, request.profile, request.budget);
  ASSERT_TRUE(one.solver.WaitUntilStarted(1));
  two.ComputePlan(request, answers.Of(0));
  while (lease.refused() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  one.solver.Release();
  const auto plan = answers.WaitFor(0);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->source, AnswerSource::kCache);
  EXPECT_EQ(solver.started(), 0);
  const auto waited = [&metrics] {
    return metrics.leases[static_cast<size_t>(LeaseOutcome::kWaited)].load();
  };
  EXPECT_EQ(waited(), 1);

  const int refused = lease.refused();
  one.solver.Hold();
  one.service->GetFrontier(request, one.answers.Of(1));
  while (one.solver.frontiers() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  two.GetFrontier(request, answers.Of(1));
  while (lease.refused() == refused) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  one.solver.Release();
  const auto frontier = answers.WaitFor(1);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_EQ(frontier->source, AnswerSource::kCache);
  EXPECT_EQ(solver.frontiers(), 0);
  EXPECT_EQ(waited(), 2);
}

// Another server's until the test says so; then `asked` is called by whoever asks for it.
class LentLease final : public SolveLease {
 public:
  explicit LentLease(PlanKey key) : key_(std::move(key)) {}

  LeaseAnswer Acquire(const SolveQuestion& question) override {
    if (!(question.key == key_)) return {LeaseState::kAlone, nullptr};
    ++asked_;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!then_) return {LeaseState::kTaken, nullptr};
    then_();
    return {LeaseState::kGranted, nullptr};
  }
  void GiveBack(std::function<void()> then) {
    const std::lock_guard<std::mutex> lock(mutex_);
    then_ = std::move(then);
  }
  int asked() const { return asked_; }

 private:
  const PlanKey key_;
  std::atomic<int> asked_{0};
  std::mutex mutex_;
  std::function<void()> then_;
};

// What was left before it came to the queue would have kept its place until a thread was free.
TEST(LeasedFlights, WhoLeavesOnTheWayToTheQueueTakesNoPlaceThere) {
  LentLease lease(ProblemOf(ProfileShape())->key);
  PlanningOptions options;
  options.solver_threads = 1;
  options.intake.threads.fill(1);
  options.lease = &lease;
  PlanningFixture fixture(true, options);
  const auto call = fixture.Ask(0, ChainProfile({}), kTight);
  while (lease.asked() == 0) std::this_thread::yield();
  fixture.Ask(1, OtherProfile(), kTight);
  ASSERT_TRUE(fixture.solver.WaitUntilStarted(1));  // nobody else is taken out of the queue
  std::promise<void> looked;
  lease.GiveBack([&] {
    const auto after = [&looked](const absl::Status&) { looked.set_value(); };
    EXPECT_TRUE(fixture.service->Defer(Lane::kParked, Account(), after).ok());
    fixture.service->Cancel(call);
  });
  EXPECT_EQ(fixture.metrics.solvers_busy, 1);
  looked.get_future().wait();
  EXPECT_EQ(fixture.metrics.queue_depth, 0);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(0).status()));
  fixture.solver.Release();
  EXPECT_TRUE(fixture.answers.WaitFor(1).ok());
  EXPECT_EQ(fixture.solver.started(), 1);
}

TEST(LeasedFlights, WhoLeavesWhileAnotherSolvesLeavesNothingBehind) {
  SharedLease lease;
  PlanningFixture fixture(false, Sharing(&lease));
  LeaseAnswer held = lease.Acquire({ProblemOf(ProfileShape())->key, kTight});
  const auto call = fixture.Ask(0, ChainProfile({}), kTight);
  fixture.service->Cancel(call);
  EXPECT_TRUE(absl::IsCancelled(fixture.answers.WaitFor(0).status()));
  const auto late = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  fixture.Ask(1, ChainProfile({}), kTight, late);
  EXPECT_TRUE(absl::IsDeadlineExceeded(fixture.answers.WaitFor(1).status()));
  fixture.Ask(2, ChainProfile({}), kTight);
  fixture.service->Stop();
  EXPECT_TRUE(absl::IsUnavailable(fixture.answers.WaitFor(2).status()));
  EXPECT_EQ(fixture.solver.started(), 0);
}

}  // namespace
}  // namespace stowage::testing
