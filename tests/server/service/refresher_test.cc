#include "server/service/refresher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "server/entries/revisions.h"
#include "server/service/plan_cache.h"
#include "server/store/memory_plan_store.h"
#include "tests/server/support/asked.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/fake_solver.h"

namespace stowage::testing {
namespace {

class KeptSpans final : public Tracer {
 public:
  void Ended(SpanRecord span) override { spans.push_back(std::move(span)); }
  std::vector<SpanRecord> spans;
};

RefresherOptions TracedBy(Tracer* tracer) {
  RefresherOptions options;
  options.tracer = tracer;
  options.trace_share = 1;
  return options;
}

class RefresherTest : public ::testing::Test {
 protected:
  void Keep(const Asked& asked, PlanEntry entry) {
    entry.generation = Now(asked) ? Now(asked)->generation + 1 : 1;
    ASSERT_TRUE(store_.Put(asked->key, std::make_shared<const PlanEntry>(std::move(entry))).ok());
  }
  std::shared_ptr<const PlanEntry> Now(const Asked& asked) {
    return store_.Get(asked->key, Access::kPeek);
  }
  Found Answer(const Asked& asked, uint64_t job) {
    const auto entry = Now(asked);
    const Found found = BestAccepted(*asked, *entry, kTight);
    refresher_.NoteAnswer(*asked, job, *entry, kTight, found);
    return found;
  }
  // Runs what was submitted until there are `jobs` of them.
  void RunJobs(int jobs) {
    for (int done = 0; done < jobs;) {
      Refresher::Job job;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        if (submitted_.empty()) continue;
        job = std::move(submitted_.front());
        submitted_.pop_front();
      }
      job(StopToken());
      ++done;
    }
  }
  size_t waiting() {
    std::lock_guard<std::mutex> lock(mutex_);
    return submitted_.size();
  }

  MemoryPlanStore store_{Bytes(64 << 20)};
  FakeSolver solver_{false};
  CountingMetrics metrics_;
  std::mutex mutex_;
  std::deque<Refresher::Job> submitted_;
  KeptSpans traced_;
  Refresher refresher_{TracedBy(&traced_), &store_, &solver_, &metrics_,
                       [this](uint64_t, Refresher::Job job) {
                         std::lock_guard<std::mutex> lock(mutex_);
                         submitted_.push_back(std::move(job));
                         return true;
                       }};
};

Asked Timed(int64_t forward_time) {
  ProfileShape shape;
  shape.forward_time = forward_time;
  return ProblemOf(shape);
}

TEST_F(RefresherTest, NewJobsAreSamplesOnce) {
  const Asked asked = Timed(100);
  Keep(asked, EntryFor(asked, kTight, 1));
  Answer(Timed(101), 1);
  EXPECT_EQ(waiting(), 0u);
  Answer(Timed(101), 2);
  RunJobs(1);
  EXPECT_EQ(Now(asked)->samples.size(), 2u);
  EXPECT_EQ(Now(asked)->generation, 2);
  Answer(Timed(101), 2);
  EXPECT_EQ(waiting(), 0u);
}

TEST_F(RefresherTest, PlansAreSolvedAnewWhenTheReferenceMoves) {
  const Asked asked = Timed(100);
  Keep(asked, EntryFor(asked, kTight, 1));
  for (uint64_t job = 2; job <= 3; ++job) {
    Answer(Timed(120), job);
    RunJobs(1);
  }
  ASSERT_NE(Now(asked)->reference, asked->costs);
  RunJobs(1);
  EXPECT_EQ(solver_.started(), 1);
  EXPECT_EQ(metrics_.resolves[static_cast<size_t>(ResolveReason::kDrift)], 1);
  // The same schedule is the best one, and proven so again.
  ASSERT_EQ(Now(asked)->plans.size(), 1u);
  EXPECT_TRUE(Now(asked)->plans[0].plan->bounds.proven_optimal);
}

TEST_F(RefresherTest, PlansOfAnotherVersionAreUpgraded) {
  const Asked asked = Timed(100);
  SolvedPlan old = Solved(asked, kTight, 1);
  old.plan.provenance.solver_version = "older";
  Keep(asked, *Record(nullptr, &old));
  Answer(asked, 1);
  Answer(asked, 1);
  RunJobs(1);
  EXPECT_EQ(metrics_.resolves[static_cast<size_t>(ResolveReason::kUpgrade)], 1);
  EXPECT_EQ(Now(asked)->plans[0].plan->provenance.solver_version, kSolverVersion);
  Answer(asked, 1);
  EXPECT_EQ(waiting(), 0u);
  ASSERT_EQ(traced_.spans.size(), 1u);
  const SpanRecord& span = traced_.spans[0];
  EXPECT_EQ(span.name, "background.solve");
  EXPECT_EQ(span.parent, SpanId{});
  ASSERT_EQ(span.attributes.size(), 4u);
  EXPECT_EQ(std::get<std::string>(span.attributes[0].second), asked->key.digest.ToHex());
  EXPECT_EQ(std::get<int64_t>(span.attributes[1].second), kTight.value());
  EXPECT_EQ(std::get<std::string>(span.attributes[2].second), "upgrade");
  EXPECT_EQ(std::get<std::string>(span.attributes[3].second), "found");
}

TEST_F(RefresherTest, AnAnswerByKeyAloneUpgradesThem) {
  const Asked asked = Timed(100);
  SolvedPlan old = Solved(asked, kTight, 1);
  old.plan.provenance.solver_version = "older";
  Keep(asked, *Record(nullptr, &old));
  NoMetrics metrics;
  PlanCache cache(
      &store_, &metrics, [](const auto&, const auto&, Bytes, const Found&) { FAIL(); },
      [this](const PlanKey& key, const PlanEntry& entry, const Plan& plan) {
        refresher_.NotePlan(key, entry, plan);
      });
  size_t next = 0;
  ASSERT_TRUE(cache.FirstServing({asked->key}, kTight, TenantScope(""), MayWait::kNo, &next)->ok());
  RunJobs(1);
  EXPECT_EQ(metrics_.resolves[static_cast<size_t>(ResolveReason::kUpgrade)], 1);
  EXPECT_EQ(Now(asked)->plans[0].plan->provenance.solver_version, kSolverVersion);
}

// However many are answered with it: a walk over the entry and the queue's lock are not for each of them.
TEST_F(RefresherTest, AnEntryIsToldOfOnceInAWhile) {
  const Asked asked = Timed(100);
  SolvedPlan old = Solved(asked, kTight, 1);
  old.plan.provenance.solver_version = "older";
  Keep(asked, *Record(nullptr, &old));
  RefresherOptions options;
  options.resolver.interval = std::chrono::milliseconds(1);
  options.resolver.burst = 1000;
  options.resolver.rest = std::chrono::nanoseconds(0);
  std::atomic<int> submitted{0};
  Refresher eager(options, &store_, &solver_, &metrics_,
                  [&submitted](uint64_t, const Refresher::Job&) { return ++submitted > 0; });
  for (int i = 0; i < 20; ++i) {
    eager.NotePlan(asked->key, *Now(asked), *Now(asked)->plans[0].plan);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  while (submitted == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LE(submitted, 2);  // ten seconds may just have gone by
}

// Five stages of equal size, of which a tight budget has some run again.
Asked WithForwards(const std::vector<int64_t>& times) {
  ChainSpec spec;
  spec.input = Bytes(100);
  for (const int64_t time : times) {
    Stage stage;
    stage.forward_time = Nanos(time);
    stage.backward_time = Nanos(2000);
    stage.output = stage.output_gradient = Bytes(100);
    stage.saved = Bytes(300);
    spec.stages.push_back(stage);
  }
  return ProblemOf(Problem(*Chain::Create(std::move(spec))));
}

// For a caller to whom what is repeated is dear, though not so dear that the plan is no answer.
TEST_F(RefresherTest, WhereAPlanAgesOneForTheCallersCostsComesBesideIt) {
  const std::vector<int64_t> usual = {1000, 990, 1000, 1000, 1000};
  const Asked asked = WithForwards(usual);
  const Bytes budget = asked->store_all.peak - Bytes(1);
  Keep(asked, EntryFor(asked, budget, 1));
  auto caller = std::make_shared<PlanningProblem>();
  Found aging;
  for (int64_t time = 1000; time < 4000 && aging.freshness != Freshness::kAging; time += 50) {
    for (size_t i = 0; i < usual.size(); ++i) {
      std::vector<int64_t> times = usual;
      times[i] = time;
      const Asked other = WithForwards(times);
      const Found found = BestAccepted(*other, *Now(asked), budget);
      if (found.freshness != Freshness::kAging) continue;
      *caller = *other;
      aging = found;
    }
  }
  ASSERT_EQ(aging.freshness, Freshness::kAging);
  caller->job = 2;
  const Plan own = Solved(caller, budget).plan;
  ASSERT_LT(own.prediction.makespan, aging.plan->prediction.makespan);

  refresher_.NoteAnswer(*caller, caller->job, *Now(asked), budget, aging);
  RunJobs(2);  // the sample, and the solve
  EXPECT_EQ(metrics_.resolves[static_cast<size_t>(ResolveReason::kStale)], 1);
  const Found theirs = BestAccepted(*caller, *Now(asked), budget);
  ASSERT_TRUE(theirs.plan.has_value());
  EXPECT_EQ(theirs.freshness, Freshness::kFresh);
  EXPECT_EQ(theirs.plan->schedule, own.schedule);
  const Found ours = BestAccepted(*asked, *Now(asked), budget);
  EXPECT_EQ(ours.plan->schedule, Now(asked)->plans[0].plan->schedule);
  EXPECT_EQ(ServingRevision(*Now(asked), budget), &Now(asked)->plans[0]);
}

TEST_F(RefresherTest, WhatIsFrozenMeanwhileStays) {
  const Asked asked = Timed(100);
  SolvedPlan old = Solved(asked, kTight, 1);
  old.plan.provenance.solver_version = "older";
  Keep(asked, *Record(nullptr, &old));
  Answer(asked, 1);
  while (waiting() == 0) std::this_thread::yield();
  Keep(asked, *Freeze(*Now(asked)));
  RunJobs(1);
  EXPECT_EQ(solver_.started(), 0);
  EXPECT_EQ(Now(asked)->generation, 2);
}

TEST_F(RefresherTest, AFailedSolveChangesNothing) {
  const Asked asked = Timed(100);
  SolvedPlan old = Solved(asked, kTight, 1);
  old.plan.provenance.solver_version = "older";
  Keep(asked, *Record(nullptr, &old));
  solver_.ThrowBadAlloc();
  Answer(asked, 1);
  RunJobs(1);
  EXPECT_EQ(metrics_.resolves[static_cast<size_t>(ResolveReason::kUpgrade)], 1);
  EXPECT_EQ(Now(asked)->generation, 1);
}

}  // namespace
}  // namespace stowage::testing
