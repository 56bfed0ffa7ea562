#include "server/entries/reference_costs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "server/entries/entry_learning.h"
#include "tests/server/support/asked.h"

namespace stowage::testing {
namespace {

Asked Timed(int64_t forward_time, int64_t overhead = 0) {
  ProfileShape shape;
  shape.forward_time = forward_time;
  shape.overhead = overhead;
  return ProblemOf(shape);
}

CostSample SampleOf(const Asked& problem, uint64_t job) { return {job, problem->costs}; }

const Stage& First(const Instance& costs) { return std::get<Chain>(costs.problem()).stage(1); }

// Learns what it can of all, in turn; jobs are numbered from `first_job`.
PlanEntry Taught(PlanEntry entry, const std::vector<Asked>& callers, uint64_t first_job = 1) {
  for (const Asked& caller : callers) {
    if (auto learned = Learn(entry, *caller, first_job++)) entry = *std::move(learned);
  }
  return entry;
}

TEST(ReferenceCosts, NeedAQuorum) {
  std::vector<CostSample> samples = {SampleOf(Timed(100), 1), SampleOf(Timed(110), 2)};
  EXPECT_FALSE(ReferenceOf(samples).has_value());
  samples.push_back(SampleOf(Timed(130), 3));
  ASSERT_TRUE(ReferenceOf(samples).has_value());
  EXPECT_EQ(First(*ReferenceOf(samples)).forward_time, Nanos(110));
  EXPECT_EQ(First(*ReferenceOf(samples)).backward_time, Nanos(220));
}

TEST(ReferenceCosts, AreMediansOfTimesAndUpperQuantilesOfOverheads) {
  std::vector<CostSample> samples;
  const int64_t times[] = {100, 140, 120, 110, 130}, overheads[] = {5, 1, 9, 7, 3};
  for (size_t i = 0; i < 5; ++i) samples.push_back(SampleOf(Timed(times[i], overheads[i]), i));
  const Instance reference = *ReferenceOf(samples);
  for (int l = 1; l <= 6; ++l) {
    const Stage& stage = std::get<Chain>(reference.problem()).stage(l);
    EXPECT_EQ(stage.forward_time, Nanos(120 + l - 1));
    EXPECT_EQ(stage.backward_time, Nanos(240));
    EXPECT_EQ(stage.forward_saving_overhead, Bytes(7));
    EXPECT_EQ(stage.forward_overhead, Bytes(7));
    EXPECT_EQ(stage.backward_overhead, Bytes(107));
  }
}

// Whose first stage stops early.
Asked Stopping(int64_t time, int64_t overhead) {
  ChainSpec spec = std::get<Chain>(Timed(1000)->costs->problem()).spec();
  spec.stages[0].recompute_saving_time = Nanos(time);
  spec.stages[0].recompute_saving_overhead = Bytes(overhead);
  return ProblemOf(Problem(*Chain::Create(std::move(spec))));
}

TEST(ReferenceCosts, StopEarlyIfAllSamplesDo) {
  std::vector<CostSample> samples;
  const int64_t times[] = {100, 140, 120, 110, 130}, overheads[] = {5, 1, 9, 7, 3};
  for (size_t i = 0; i < 5; ++i) samples.push_back(SampleOf(Stopping(times[i], overheads[i]), i));
  const Instance stopping = *ReferenceOf(samples);
  EXPECT_EQ(First(stopping).recompute_saving_time, Nanos(120));
  EXPECT_EQ(First(stopping).recompute_saving_overhead, Bytes(7));
  EXPECT_FALSE(std::get<Chain>(stopping.problem()).stage(2).stops());
  samples.push_back(SampleOf(Timed(1000), 5));
  EXPECT_FALSE(First(*ReferenceOf(samples)).stops());
}

TEST(ReferenceCosts, OfGraphsAreThoseOfEachVertex) {
  const auto timed = [](int64_t time, int64_t first_id) {
    GraphSpec spec;
    for (int64_t i = 0; i < 4; ++i) {
      Vertex v;
      v.id = first_id + 10 * i;
      v.program_order = i;
      v.output = v.output_gradient = Bytes(100);
      v.forward_time = Nanos(time + i);
      v.backward_overhead = Bytes(time);
      if (i > 0) v.inputs = {{v.id - 10, true}};
      spec.vertices.push_back(v);
    }
    return ProblemOf(Problem(*Graph::Create(spec)));
  };
  const std::vector<CostSample> samples = {SampleOf(timed(30, 0), 1), SampleOf(timed(10, 7), 2),
                                           SampleOf(timed(20, 5), 3)};
  const Instance reference = *ReferenceOf(samples);
  const Graph& graph = std::get<Graph>(reference.problem());
  ASSERT_EQ(graph.size(), 4);
  for (int p = 0; p < 4; ++p) {
    EXPECT_EQ(graph.vertex(p).forward_time, Nanos(20 + p));
    EXPECT_EQ(graph.vertex(p).backward_overhead, Bytes(20));
    EXPECT_EQ(graph.vertex(p).inputs.size(), p > 0 ? 1u : 0u);
  }
}

TEST(ReferenceCosts, HaveTheMedianLinkIfMostHaveOne) {
  const auto linked = [](int64_t bandwidth, int64_t latency) {
    ProfileShape shape;
    shape.host_memory = 1000;
    shape.link_class = 1;
    shape.bandwidth = bandwidth;
    shape.latency = latency;
    return ProblemOf(shape);
  };
  std::vector<CostSample> samples = {SampleOf(linked(100, 1), 1), SampleOf(linked(0, 0), 2),
                                     SampleOf(linked(300, 9), 3), SampleOf(linked(200, 3), 4)};
  const Instance reference = *ReferenceOf(samples);
  ASSERT_TRUE(reference.link().has_value());
  EXPECT_EQ(reference.link()->to_host.bytes_per_second, 200);
  EXPECT_EQ(reference.link()->to_device.latency, Nanos(3));
  EXPECT_EQ(reference.link()->host_memory, Bytes(1000));
  samples[3] = SampleOf(linked(0, 0), 4);
  EXPECT_FALSE(ReferenceOf(samples)->link().has_value());
}

TEST(ReferenceCosts, FewerSamplesOfLargerProblems) {
  EXPECT_EQ(SampleLimit(Timed(10)->costs->problem()), kMostSamples);
  const auto limit = [](int stages) {
    ProfileShape shape;
    shape.stages = stages;
    return SampleLimit(ChainProfile(shape).problem);
  };
  EXPECT_EQ(limit(39999), 5u);
  EXPECT_EQ(limit(99999), kQuorum);
}

TEST(ReferenceCosts, JobsWithoutANameAreOneJob) {
  EXPECT_EQ(JobHash(""), 0u);
  EXPECT_NE(JobHash("a"), 0u);
  EXPECT_NE(JobHash("a"), JobHash("b"));
  EXPECT_EQ(JobHash("a"), JobHash("a"));
  EXPECT_NE(JobHash("a", "team"), JobHash("a"));
  EXPECT_NE(JobHash("a", "team"), JobHash("a", "other"));
  EXPECT_NE(JobHash("", "team"), 0u);
  EXPECT_EQ(IdentityHash(""), 0u);
}

TEST(JudgeSample, HearsEachJobOnce) {
  const PlanEntry entry = EntryFor(Timed(100), kTight, 7);
  EXPECT_EQ(JudgeSample(entry, *Timed(100)->costs, 7), SampleVerdict::kKnown);
  EXPECT_EQ(JudgeSample(entry, *Timed(100)->costs, 8), SampleVerdict::kNew);
  PlanEntry frozen = entry;
  frozen.frozen = true;
  EXPECT_EQ(JudgeSample(frozen, *Timed(100)->costs, 8), SampleVerdict::kUnusable);
  ProfileShape timeless;
  timeless.timed = false;
  EXPECT_EQ(JudgeSample(entry, *ProblemOf(timeless)->costs, 8), SampleVerdict::kUnusable);
}

// An entry that was forged: such costs would be paired step by step.
TEST(JudgeSample, CostsOfAnotherNetworkAreNone) {
  const PlanEntry entry = EntryFor(Timed(100), kTight, 7);
  ProfileShape longer;
  longer.stages += 1;
  EXPECT_EQ(JudgeSample(entry, *ProblemOf(longer)->costs, 8), SampleVerdict::kUnusable);
  GraphSpec spec;
  for (int v = 0; v < 2; ++v) {
    Vertex vertex;
    vertex.id = vertex.program_order = v;
    vertex.output = Bytes(8);
    vertex.forward_time = Nanos(100);
    if (v > 0) vertex.inputs.push_back(GraphInput{0});
    spec.vertices.push_back(vertex);
  }
  const Instance graph(*Graph::Create(std::move(spec)));
  EXPECT_EQ(JudgeSample(entry, graph, 8), SampleVerdict::kUnusable);
}

TEST(Learn, OneIdentityHasNoMoreVoicesThanAQuorum) {
  const auto of = [](uint64_t identity, int64_t time) {
    auto problem = std::make_shared<PlanningProblem>(*Timed(time));
    problem->identity = identity;
    return problem;
  };
  PlanEntry entry = EntryFor(of(1, 100), kTight, 1);
  EXPECT_EQ(entry.samples[0].identity, 1u);
  for (uint64_t job = 2; job < 20; ++job) {
    if (auto learned = Learn(entry, *of(1, 390), job)) entry = *std::move(learned);
  }
  EXPECT_EQ(entry.samples.size(), kQuorum);
  EXPECT_EQ(JudgeSample(entry, *Timed(100)->costs, 30, 1), SampleVerdict::kKnown);
  EXPECT_EQ(JudgeSample(entry, *Timed(100)->costs, 30, 2), SampleVerdict::kNew);
  EXPECT_EQ(JudgeSample(entry, *Timed(100)->costs, 30), SampleVerdict::kNew);
  // Beside another one it is no quorum. Heard again, its oldest voice goes, and no other's.
  entry = *Learn(entry, *of(2, 100), 30);
  ASSERT_EQ(entry.samples.size(), kQuorum);
  entry.reports = std::vector<ReportSample>(3);
  for (size_t i = 0; i < 3; ++i) {
    entry.reports[i] = {i, kTight, entry.plans[0].plan->revision, 1.5, 1.0};
  }
  entry.profile_wanted = true;
  const PlanEntry again = *Learn(entry, *of(1, 110), 31);
  ASSERT_EQ(again.samples.size(), kQuorum);
  EXPECT_EQ(again.samples[1].job, 30u);
  EXPECT_EQ(again.samples[2].job, 31u);
}

TEST(JudgeSample, KnowsOutliersOnceAQuorumAgrees) {
  PlanEntry entry = EntryFor(Timed(1000), kTight, 1);
  EXPECT_EQ(JudgeSample(entry, *Timed(10000)->costs, 9), SampleVerdict::kNew);
  entry = Taught(entry, {Timed(1100), Timed(900)}, 2);
  EXPECT_EQ(JudgeSample(entry, *Timed(10000)->costs, 9), SampleVerdict::kOutlier);
  EXPECT_EQ(JudgeSample(entry, *Timed(100)->costs, 9), SampleVerdict::kOutlier);
  EXPECT_EQ(JudgeSample(entry, *Timed(3000)->costs, 9), SampleVerdict::kNew);
  EXPECT_FALSE(Learn(entry, *Timed(10000), 9).has_value());
}

TEST(JudgeSample, HearsOneNewJobInEightWhenItHasEnough) {
  PlanEntry entry = EntryFor(Timed(100), kTight, 1);
  entry = Taught(entry, std::vector<Asked>(8, Timed(100)), 2);
  ASSERT_EQ(entry.samples.size(), kMostSamples);
  int heard = 0;
  for (uint64_t job = 100; job < 180; ++job) {
    const auto verdict = JudgeSample(entry, *Timed(100)->costs, job);
    ASSERT_TRUE(verdict == SampleVerdict::kNew || verdict == SampleVerdict::kKnown);
    if (verdict == SampleVerdict::kNew) ++heard;
  }
  EXPECT_EQ(heard, 10);
  const PlanEntry later = *Learn(entry, *Timed(100), 104);
  EXPECT_EQ(later.samples.size(), kMostSamples);
  EXPECT_EQ(later.samples.front().job, 2u);
  EXPECT_EQ(later.samples.back().job, 104u);
}

TEST(Learn, AFirstProfileFarFromTheOthersIsOutvoted) {
  const PlanEntry odd = EntryFor(Timed(10000), kTight, 1);
  const PlanEntry two = Taught(odd, {Timed(100), Timed(110)}, 2);
  EXPECT_EQ(two.reference, odd.reference);
  const PlanEntry three = Taught(two, {Timed(120)}, 4);
  EXPECT_EQ(First(*three.reference).forward_time, Nanos(110));
}

TEST(Learn, PlansAreJudgedAnewWhenTheReferenceMoves) {
  PlanEntry entry = EntryFor(Timed(100), kTight, 1);
  SolvedPlan tight = Solved(Timed(100), entry.store_all.peak, 1);
  entry = *Record(&entry, &tight);
  ASSERT_EQ(entry.plans.size(), 2u);
  entry.reports = {{5, kTight, 1, 1.2, 1.0}, {5, tight.plan.budget, 1, 1.2, 1.0}};
  entry.least_budget = Bytes(5);
  const Plan before = *entry.plans[0].plan;
  // Store-all at its exact peak does not fit with overheads; what is tighter has room for them.
  entry.plans[0].plan = [&] {
    Plan roomy = before;
    roomy.budget = kTight + Bytes(50);
    return std::make_shared<const Plan>(roomy);
  }();
  entry.reports[0].budget = kTight + Bytes(50);
  const PlanEntry moved = Taught(entry, {Timed(200, 10), Timed(210, 10)}, 2);
  ASSERT_NE(moved.reference, entry.reference);
  EXPECT_EQ(First(*moved.reference).forward_overhead, Bytes(10));
  ASSERT_EQ(moved.plans.size(), 1u);
  const Plan& after = *moved.plans[0].plan;
  EXPECT_EQ(after.schedule, before.schedule);
  EXPECT_GT(after.prediction.makespan, before.prediction.makespan);
  EXPECT_FALSE(moved.least_budget.has_value());
  EXPECT_GT(moved.store_all.peak, entry.store_all.peak);
  // What was 20% over the old prediction is below the new one.
  ASSERT_EQ(moved.reports.size(), 1u);
  EXPECT_NEAR(moved.reports[0].time_ratio * static_cast<double>(after.prediction.makespan.value()),
              1.2 * static_cast<double>(before.prediction.makespan.value()), 1e-6);
}

TEST(Learn, AnEarlyStopThatChangesMovesTheReference) {
  const Instance now = *Stopping(100, 5)->costs;
  EXPECT_FALSE(MovesFrom(now, *Stopping(101, 5)->costs));
  EXPECT_TRUE(MovesFrom(now, *Stopping(900, 5)->costs));
  EXPECT_TRUE(MovesFrom(now, *Stopping(100, 6)->costs));
  EXPECT_TRUE(MovesFrom(now, *Timed(1000)->costs));
}

TEST(Learn, JitterMovesNothing) {
  const PlanEntry entry = EntryFor(Timed(1000), kTight, 1);
  const PlanEntry taught = Taught(entry, {Timed(1010), Timed(990), Timed(1015)}, 2);
  EXPECT_EQ(taught.reference, entry.reference);
  EXPECT_EQ(taught.plans[0].plan, entry.plans[0].plan);
  EXPECT_EQ(taught.samples.size(), 4u);
}

// A chain of the structure of ChainProfile({}) with costs of any size.
Asked Wild(std::mt19937_64* rng, int64_t most) {
  std::uniform_int_distribution<int64_t> cost(0, most);
  ChainSpec spec = std::get<Chain>(ChainProfile({}).problem).spec();
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(cost(*rng));
    stage.backward_time = Nanos(1 + cost(*rng));
    stage.forward_saving_overhead = Bytes(cost(*rng));
    stage.forward_overhead = Bytes(cost(*rng));
    stage.backward_overhead = Bytes(cost(*rng));
  }
  return ProblemOf(Problem(*Chain::Create(std::move(spec))));
}

// Whether every figure lies between the least and the largest of the others'.
void ExpectWithin(const Instance& costs, const std::vector<Asked>& others) {
  for (int l = 1; l <= 6; ++l) {
    const auto at = [l](const Instance& instance) -> const Stage& {
      return std::get<Chain>(instance.problem()).stage(l);
    };
    const auto expect = [&](auto member) {
      auto least = at(*others[0]->costs).*member, most = least;
      for (const Asked& other : others) {
        least = std::min(least, at(*other->costs).*member);
        most = std::max(most, at(*other->costs).*member);
      }
      EXPECT_GE(at(costs).*member, least);
      EXPECT_LE(at(costs).*member, most);
    };
    expect(&Stage::forward_time);
    expect(&Stage::backward_time);
    expect(&Stage::forward_saving_overhead);
    expect(&Stage::forward_overhead);
    expect(&Stage::backward_overhead);
  }
}

// Whoever comes when, and however often: one job alone leaves every figure within the range of those
// of the others, and while there are too few others, the first one's.
TEST(Learn, OneJobMovesNothingBeyondTheOthers) {
  std::mt19937_64 rng(11);
  for (int round = 0; round < 100; ++round) {
    const size_t others = 1 + rng() % 7;
    std::vector<Asked> honest;
    for (size_t i = 0; i < others; ++i) honest.push_back(Wild(&rng, 100));
    PlanEntry entry = EntryFor(honest[0], Bytes(100000), 2);
    const auto first = entry.reference;
    uint64_t next = 1;
    for (int step = 0; step < 12; ++step) {
      if (step % 2 == 0 && next < others) {
        entry = Taught(entry, {honest[next]}, 2 + next);
        ++next;
        continue;
      }
      const int64_t size = rng() % 2 == 0 ? 300 : int64_t{1} << 40;
      entry = Taught(entry, {Wild(&rng, size)}, 1);
    }
    if (others == 1) {
      EXPECT_EQ(entry.reference, first);
    }
    ExpectWithin(*entry.reference, honest);
  }
}

}  // namespace
}  // namespace stowage::testing
